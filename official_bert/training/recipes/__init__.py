"""Training recipes that are newer than the original; each is off by default."""
