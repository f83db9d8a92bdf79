"""The private kernels, one algorithm per file, and their interface."""
