"""Text files -> documents.

Readers, sentence splitting, text from Python itself, and the corpus report.
"""
