"""Read and write weights, under Google's variable names.

`any_format` opens a checkpoint; `model_directory` loads and writes a model.
"""
