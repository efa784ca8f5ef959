"""Headers of a page that runs a model in the browser."""

# Threads of WebAssembly need both; `serve.py` and the page's service worker send them.
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}
