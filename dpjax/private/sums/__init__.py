"""Sums of clipped contributions, before any noise: over all records, or over a Poisson sample of them."""
