"""PyTorch with transformers: speed, fine-tuning, and single training steps."""
