"""Dirichlet records with Gamma priors of the shapes."""

import jax.numpy as jnp

from dpjax._util.pytree import static
from dpjax._util.validation import check_count, fail, name_of
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.models.arguments import as_array
from dpjax.models.bijections import POSITIVE, Bijection, MappedModel
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import GammaPrior
from dpjax.numerics.dirichlet import (
    dirichlet_log_density,
    dirichlet_log_normaliser,
    dirichlet_log_powers,
    draw_shares,
    share_features,
)

__all__ = ["dirichlet"]


@accept_distributions
def dirichlet(shape_prior: GammaPrior, dim: int) -> Model:
    """Records ``{"share": [dim]}`` of positive shares that sum to 1, of density ∝ Π share^(shape - 1).

    Parameters
    ----------
    shape_prior
        The independent priors of the entries of ``shape`` [dim]; a scalar prior is used for all.
    dim
        The number of shares, at least 2.

    Raises
    ------
    TypeError, ValueError
        If the prior is of another type or its size is not 1 or dim, or dim is not a whole number above 1.

    Notes
    -----
    There is no exact update of the shapes: a kernel on the log scale updates them, through ``summarize`` and
    ``log_likelihood``. Densities are with respect to the first dim - 1 shares. Shares closer to 0 than 4 times the
    smallest float are represented by one number, and the density there is its average over that cell. So the posterior
    is exact for arbitrarily small shapes.

    Examples
    --------
    >>> import dpjax
    >>> model = dpjax.models.dirichlet(dpjax.models.GammaPrior(2.0, 1.0), dim=3)
    """
    dim = check_count("dim", dim, "A composition has at least two shares.", least=2)
    check_prior(shape_prior, dim)
    return Dirichlet(shape_prior, dim)


class Dirichlet(MappedModel):
    """Dirichlet records, as `dirichlet` describes them."""

    shape_prior: GammaPrior
    dim: int = static()

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return {"shape": self.shape_prior.sample(key, (self.dim,))}

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.shape_prior.log_density(parameters["shape"])

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        return {"share": draw_shares(key, jnp.broadcast_to(parameters["shape"], (n, self.dim)))}

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each composition [n]."""
        return dirichlet_log_density(parameters["shape"], records["share"])

    def summarize(self, records: Records) -> Records:
        """The number of compositions and the sums [dim] of the features of the Dirichlet density."""
        shares = records["share"]
        features = tuple(jnp.sum(feature, axis=0) for feature in share_features(shares))
        return {"count": jnp.asarray(len(shares), float), "features": features}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-density [] of all compositions."""
        shape = parameters["shape"]
        return summary["count"] * dirichlet_log_normaliser(shape) + dirichlet_log_powers(shape, summary["features"])

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The logarithms of the shapes."""
        return {"shape": POSITIVE}


def check_prior(prior: GammaPrior, dim: int) -> None:
    """Raise unless the prior fits the shapes of `dim` shares."""
    if not isinstance(prior, GammaPrior):
        fail("shape_prior", name_of(prior), "a GammaPrior", "Pass GammaPrior(shape, rate).", error=TypeError)
    for name, value in (("shape", prior.shape), ("rate", prior.rate)):
        given = as_array(f"shape_prior.{name}", value, "numbers", "Pass numbers.").shape
        if given not in ((), (dim,)):
            expected = f"shape [] or [{dim}]"
            fail(f"shape_prior.{name}", f"shape {list(given)}", expected, "Pass one number, or one for each share.")
