"""CSV, TSV and JSON lines -> labeled examples.

Readers choose the columns, report wrong rows, and split off a dev set.
"""
