"""Run the paper's ablation tables with the ordinary commands."""
