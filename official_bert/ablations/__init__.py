"""The tables of the paper's ablations, made with the ordinary commands."""
