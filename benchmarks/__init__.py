"""Speed and results compared with other libraries and the machine's limits."""
