"""Exports of finished models for servers and devices.

`saved_model/` and `tflite/` build exports and compare them with the Python
model.
"""
