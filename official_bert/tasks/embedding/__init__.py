"""Sentence embeddings: vectors of texts.

Files, features, the training job, evaluation, search, and the predictors.
"""
