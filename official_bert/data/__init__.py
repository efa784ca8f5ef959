"""Documents -> training instances -> TFRecords -> `tf.data`.

Follows `create_pretraining_data.py` of google-research/bert.
"""
