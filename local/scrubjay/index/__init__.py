"""The in-memory index: documents, postings, vectors."""
