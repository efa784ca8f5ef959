"""Named entities (CoNLL-2003, Sec. 5.3): words with tags.

Files, windows of tokens, the training job, the predictor and its reports.
"""
