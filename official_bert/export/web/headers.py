"""HTTP headers for a page that runs a model in the browser."""

# WebAssembly threads need both; `serve.py` and the page's service worker send
# them.
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}
