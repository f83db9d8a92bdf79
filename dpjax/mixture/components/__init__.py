"""Mixture kernels with the base measures of their parameters."""
