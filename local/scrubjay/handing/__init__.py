"""What agents are handed unasked at a session's start: what is worth it, and how it is put. Pure."""
