"""What both ends of scrubjay need: records, ops, merge, wire format, errors, clock. Pure; imports nothing else of ours."""
