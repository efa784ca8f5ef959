"""Make training records from a corpus of any size.

Worker processes are here, Apache Beam in `beam/`, Apache Spark in `spark/`.
"""
