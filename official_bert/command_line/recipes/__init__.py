"""Flags of recipes that are newer than the original."""
