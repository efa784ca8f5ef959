"""A folder for any static host: a page that runs the model in the browser."""

__all__: list[str] = []
