"""A server to try an export, and clients.

REST as TF Serving's; the gRPC client talks to TF Serving itself.
"""
