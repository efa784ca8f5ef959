"""Throughput: a step's operations, the devices' peak rate, and timely batches."""
