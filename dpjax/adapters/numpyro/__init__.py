"""Complete-data models from NumPyro models of one plate of records."""

from dpjax.adapters.numpyro.model import from_numpyro
from dpjax.adapters.numpyro.private import private_target

__all__ = ["from_numpyro", "private_target"]
