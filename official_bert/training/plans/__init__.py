"""Plans: what a training step costs on an accelerator that is not attached.

The TPU's own compiler counts; for GPUs the numbers are estimates.
"""
