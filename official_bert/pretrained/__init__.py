"""Use a model without a task.

Fill-mask, likelihood, attention maps and feature vectors.
"""
