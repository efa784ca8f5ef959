"""Provide a trial server for exports, and clients.

The server has TF Serving's REST API. The gRPC client connects to TF Serving itself.
"""
