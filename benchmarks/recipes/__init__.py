"""Compare pre-training recipes that get the same time: losses and scores with seeds."""
