"""The parts of `run.py`: what is measured, in which processes, and the report."""
