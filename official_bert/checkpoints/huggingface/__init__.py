"""Read and write Hugging Face model directories.

Weights pass through a `Checkpoint` under Google's names.
"""
