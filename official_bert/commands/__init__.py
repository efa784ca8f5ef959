"""Define the commands, one module each: flags, then calls into the library.

`run_scripts/` starts them under the names of google-research/bert.
"""
