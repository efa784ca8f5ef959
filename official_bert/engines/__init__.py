"""Training records from a corpus of any size.

Worker processes here; Apache Beam in `beam/`, Apache Spark in `spark/`.
"""
