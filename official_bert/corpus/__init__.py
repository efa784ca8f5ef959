"""Convert text files to documents.

Readers, sentence splitting, text from Python itself, and the corpus report.
"""
