"""GLUE and XNLI: their tasks, files and submissions.

One entry of a table describes each task; `classifier/` trains and evaluates it.
"""
