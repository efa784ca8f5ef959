"""The data engine on Apache Spark, for clusters.

Jobs count words and make the same records as the local engine.
"""
