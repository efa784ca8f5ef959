"""What a run reports: progress, metrics, TensorBoard events, curves, results.

Other code reads these files through the same modules.
"""
