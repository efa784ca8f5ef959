"""TFRecord files of training instances.

The format, its writer and manifest, and random access to the records.
"""
