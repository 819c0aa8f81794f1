"""The commands, a module for each.

A module has `configure`, which adds what the command takes to a parser, and `run`, which does it and returns the exit
code (None is 0). It bears the name of the command, with an underscore where Python has that word. None imports another.
"""
