"""The reports of a run: progress, metrics, TensorBoard events, curves, results.

Other code reads these files with the same modules.
"""
