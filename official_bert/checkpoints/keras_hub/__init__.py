"""Read and write KerasHub presets and `BertBackbone` models.

Weights pass through a `Checkpoint` under Google's names.
"""
