"""How other programs are told of scrubjay: what their settings must say, added to what is there and taken out again."""
