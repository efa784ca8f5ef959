"""Models by name: download once, then read from the cache.

`find.find_model` returns the local path of a model of Hugging Face, of Kaggle (KerasHub
presets), of Google's releases and of object stores.
"""
