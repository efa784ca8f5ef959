"""CSV, TSV and JSON lines -> labeled examples.

Readers find the columns, name wrong rows, and split off a dev set.
"""
