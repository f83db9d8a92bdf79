"""Complete-data models from NumPyro models of one plate of records."""

from dpjax.adapters.numpyro.model import from_numpyro

__all__ = ["from_numpyro"]
