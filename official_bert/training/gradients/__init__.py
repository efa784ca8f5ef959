"""Gradients of a batch that is split over devices and micro-batches."""
