"""How the gradients of a batch are computed in parts, on devices and micro-batches."""
