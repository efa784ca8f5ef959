"""Optimized forms of what the layers compute, each equal to its plain form.

`interface` names the functions, `choose` says where which form is used.
"""
