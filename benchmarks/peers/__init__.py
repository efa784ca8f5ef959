"""The other libraries of the comparison; `ours.py` is this project."""
