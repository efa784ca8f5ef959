"""GLUE and XNLI: their tasks, files and submissions.

One row of a table describes a task; `classifier/` trains and evaluates it.
"""
