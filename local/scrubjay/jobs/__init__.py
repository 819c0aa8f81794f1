"""Work that the daemon does by itself, in the background."""
