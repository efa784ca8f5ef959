"""The exported training step on GPUs and other devices of JAX."""
