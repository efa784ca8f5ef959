"""The data engine on Apache Beam, for clusters.

Pipelines count words and make the same records as the local engine.
"""
