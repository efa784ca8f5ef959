"""The official scores: GLUE, SQuAD and entities.

Plain Python and NumPy, equal to the published scripts.
"""
