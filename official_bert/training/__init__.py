"""Optimizer, schedule, strategies, the training loop, saving and resuming.

Pre-training and fine-tuning both use `runs`.
"""
