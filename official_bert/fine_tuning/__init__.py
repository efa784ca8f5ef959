"""The fine-tuning job that all tasks share: from features to a finished model.

Batches, windows, training, sweep, `task.json`, and loading the result.
"""
