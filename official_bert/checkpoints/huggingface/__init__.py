"""Hugging Face model directories, read and written.

Weights pass through a `Checkpoint` under Google's names.
"""
