"""What both ends of scrubjay need: records, ops, merge, wire format, errors, clock. Pure, and imports nothing of ours."""
