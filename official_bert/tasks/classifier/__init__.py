"""Classification and regression of texts and pairs (Sec. 4.1).

Data, features, the training job, the predictor and its reports.
"""
