"""The use cases of scrubjay, one method each."""
