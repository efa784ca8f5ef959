"""The exported training step on GPUs and other JAX devices."""
