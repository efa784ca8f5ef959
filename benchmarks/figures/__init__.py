"""Figures and tables of the documentation, from JSON files only."""
