"""Multiple choice (SWAG, ARC, Sec. 4.4).

Files, features, the training job, the predictor and its reports.
"""
