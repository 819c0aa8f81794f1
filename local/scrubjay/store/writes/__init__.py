"""What this device writes: each change with its op, and what keeps no op, by area."""
