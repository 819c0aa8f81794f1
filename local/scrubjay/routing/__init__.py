"""From a question to the places where its answer stands: what it asks for, in which time, by which layers. Pure."""
