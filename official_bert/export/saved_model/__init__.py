"""SavedModels for TF Serving that take raw text.

One module per task family builds the graph; `writer` writes and verifies the
folder.
"""
