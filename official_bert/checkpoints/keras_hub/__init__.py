"""KerasHub presets and its `BertBackbone`, read and written.

Weights pass through a `Checkpoint` under Google's names.
"""
