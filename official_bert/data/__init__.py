"""Convert documents to training instances, TFRecords and `tf.data`.

Follows `create_pretraining_data.py` of google-research/bert.
"""
