"""Coupled chains: pairs that meet, and what their meetings say about convergence."""
