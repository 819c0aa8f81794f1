"""What both ends need: records, ops, merge, wire format, errors, clock. Pure, and imports nothing else of ours."""
