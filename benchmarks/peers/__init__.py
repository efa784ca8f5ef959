"""The other libraries that this project is compared with; `ours.py` is ours."""
