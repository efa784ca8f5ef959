"""Models by name: downloaded once, then read from a cache.

`find.find_model` returns the local path of a model from Hugging Face, Kaggle
(KerasHub presets), Google's releases or an object store.
"""
