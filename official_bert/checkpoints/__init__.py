"""Weights in and out, under Google's names.

`any_format` opens a checkpoint; `model_directory` loads and writes a model.
"""
