"""Throughput: the operations of a step, the devices' peak, and batches in time."""
