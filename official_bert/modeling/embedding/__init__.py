"""Sentence embeddings: the model and its losses."""
