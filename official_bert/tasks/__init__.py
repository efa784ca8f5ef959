"""Tasks that a pre-trained model is fine-tuned on, one folder per family.

`predictor` loads a finished model of any family.
"""
