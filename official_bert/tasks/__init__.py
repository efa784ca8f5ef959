"""Tasks for which a pre-trained model is fine-tuned, one folder per family.

`predictor` loads a finished model of any family.
"""
