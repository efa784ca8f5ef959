"""Questions about contexts (SQuAD 1.1 and 2.0, Sec. 4.2 and 4.3).

Files, windows, the training job, answers from logits, the predictor and its reports.
"""
