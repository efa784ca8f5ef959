"""The official scores of GLUE, SQuAD, entities and retrieval.

Plain Python and NumPy, with the same results as the published scripts.
"""
