"""The paper's ablations: which models, which scores, and what the paper found."""
