"""Optimized forms of the layers' computations, each equal to its plain form.

`interface` lists the functions. `choose` selects the form for each purpose.
"""
