"""Exports for the browser: a page with the model, for any static host."""

__all__: list[str] = []
