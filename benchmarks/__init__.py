"""Speed and results compared with other libraries and with the machine's limits."""
