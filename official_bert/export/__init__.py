"""Finished models for servers and devices.

`saved_model/` and `tflite/` build them and check that they equal the Python model.
"""
