"""Vectors of texts from an exported encoder.

The predictor runs a `.tflite` file and returns one vector for each text.
"""
