"""Plans: the cost of a training step on an accelerator that is not attached.

Numbers for TPUs come from the TPU compiler. Numbers for GPUs are estimates.
"""
