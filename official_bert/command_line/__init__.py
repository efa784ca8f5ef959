"""Flags, flag files and errors: what all commands share.

`start.run_command` runs a module of `commands/`.
"""
