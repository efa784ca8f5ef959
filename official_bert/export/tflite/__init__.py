"""TFLite models for devices.

`writer` converts a model, verifies it, and adds the tokenizer and its files.
`mediapipe` writes the form that MediaPipe's text tasks load.
"""
