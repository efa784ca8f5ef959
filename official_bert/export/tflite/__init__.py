"""TFLite models for devices.

`writer` converts a model, verifies it, and adds the tokenizer and its files.
"""
