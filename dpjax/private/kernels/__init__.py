"""The private kernels, one algorithm a file, and the contract that they meet."""
