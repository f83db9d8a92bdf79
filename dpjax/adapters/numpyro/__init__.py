"""Complete-data models from NumPyro models of one plate of records, and releases in models of the user's own."""

from dpjax.adapters.numpyro.chains import MarkovChain, NormalChain
from dpjax.adapters.numpyro.factor import release_factor
from dpjax.adapters.numpyro.model import from_numpyro
from dpjax.adapters.numpyro.private import numpyro_target
from dpjax.adapters.numpyro.unknown import unknown

__all__ = [
    "MarkovChain",
    "NormalChain",
    "from_numpyro",
    "numpyro_target",
    "private_target",
    "release_factor",
    "unknown",
]

private_target = numpyro_target
"""The name of `numpyro_target` in `dpjax`."""
