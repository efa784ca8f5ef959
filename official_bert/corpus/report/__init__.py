"""The corpus report: statistics of a build's text, with warnings and a figure.

Counters run during the build; `report` turns their sums into sentences.
"""
