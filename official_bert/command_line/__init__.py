"""Share flags, flag files and errors between all commands.

`start.run_command` runs a module of `commands/`.
"""

import os

# Hide TensorFlow's start-up messages from users, but show its errors.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
