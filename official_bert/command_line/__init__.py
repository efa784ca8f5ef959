"""Flags, flag files and errors: what all commands share.

`start.run_command` runs a module of `commands/`.
"""

import os

# TensorFlow's start-up messages are not for users; its errors are.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
