"""The corpus report: what is in the text of a build, with warnings and a figure.

Counters run with the build; `report` turns their sums into sentences.
"""
