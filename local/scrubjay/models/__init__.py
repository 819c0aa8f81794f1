"""Embedding and reranking models: what there is, where it runs, and which is in use."""
