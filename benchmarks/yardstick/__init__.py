"""The parts of `run.py`: the measured work, the processes, and the report."""
