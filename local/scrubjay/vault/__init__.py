"""An agent's memory as plain markdown files: how they are read, written, and merged with the store."""
