"""Numbers of mechanisms that are not known, with priors that are NumPyro's or those of `dpjax.models`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import distributions as dist

from dpjax._util.pytree import PyTree
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, name_of
from dpjax.adapters.numpyro.floats import on_floats
from dpjax.base import Array, Key
from dpjax.mechanisms.unknown import UnknownChannel, UnknownNumber
from dpjax.models.priors import GammaPrior, InverseGammaPrior, NormalPrior

__all__ = ["unknown"]


class NumberPrior(PyTree):
    """The prior of a number, or of an array of them such as the probabilities of a channel.

    Attributes
    ----------
    distribution
        Of NumPyro.
    """

    distribution: Any

    def sample(self, key: Key) -> Array:
        """A draw."""
        return jnp.asarray(on_floats(self.distribution).sample(key))

    def log_density(self, value: Array) -> Array:
        """The log-density []."""
        return jnp.sum(on_floats(self.distribution).log_prob(value))

    @property
    def _transform(self) -> Any:
        return dist.biject_to(self.distribution.support)

    def unconstrain(self, value: Array) -> Array:
        """The value as unconstrained numbers."""
        return jnp.asarray(self._transform.inv(value))

    def constrain(self, unconstrained: Array) -> Array:
        """Its inverse."""
        return jnp.asarray(self._transform(unconstrained))

    def log_jacobian(self, unconstrained: Array) -> Array:
        """The log absolute determinant [] of `constrain`."""
        return jnp.sum(self._transform.log_abs_det_jacobian(unconstrained, self._transform(unconstrained)))


@names_arguments
def unknown(name: Any, prior: Any) -> Any:
    """A number of a mechanism that is not known, and is estimated with the parameters.

    It stands in the place of a number of a channel of a `dpjax.LocalRelease`, of one field or of several, such as the
    standard deviation of a laboratory's error. `dpjax.sample` sums the records out, and reports draws of
    the number under its name. What has no place as one number, such as the matrix of a channel, needs a function of the
    parameters that returns the mechanism.

    Parameters
    ----------
    name
        The name of the number among the draws; or a function ``parameters -> mechanism``, which may read parameters of
        the model, too.
    prior
        Its prior: a NumPyro distribution, `dpjax.models.NormalPrior`, `GammaPrior` or `InverseGammaPrior`. For a
        function a dict of them by name.

    Raises
    ------
    TypeError, ValueError
        If the prior is none of these, or one of whole numbers; or the number is an array, and no function is given.

    Examples
    --------
    >>> import dpjax, numpyro.distributions as dist
    >>> error = dpjax.Gaussian(dpjax.unknown("error", dist.HalfNormal(2.0)))
    >>> release = dpjax.LocalRelease([3.1, 2.4, 5.0], error, field="y")
    >>> print(dpjax.describe(release))
    EstimatedNoise of n = 3 records
    fields: `y` (Gaussian)
    Numbers of the noise are estimated: error.
    What a release of this kind promises is not known.
    """
    if isinstance(name, str):
        found = read_prior("prior", prior)
        value = found.sample(jax.random.key(0))
        if value.shape != ():
            remedy = "Pass a function of it: dpjax.unknown(lambda p: ..., {name: prior})."
            fail("prior", f"one of an array {list(value.shape)}", "one of a single number", remedy)
        return UnknownNumber(float(value), name, found)
    function: Callable[..., Any] = name
    if not callable(name) or not isinstance(prior, dict):
        remedy = "Pass a name and a prior, or a function of the parameters and a dict of priors."
        fail("name", name_of(name), "a string, or a function beside a dict", remedy, error=TypeError)
    return UnknownChannel(function, {key: read_prior(f"prior[{key!r}]", one) for key, one in prior.items()})


def read_prior(argument: str, prior: Any) -> NumberPrior:
    """A prior by NumPyro's distribution, or an error."""
    match prior:
        case NormalPrior():
            prior = dist.Normal(prior.mean, prior.scale)
        case GammaPrior():
            prior = dist.Gamma(prior.shape, prior.rate)
        case InverseGammaPrior():
            prior = dist.InverseGamma(prior.shape, prior.scale)
    remedy = "Pass one such as numpyro.distributions.HalfNormal(1.0), or dpjax.models.GammaPrior(2.0, 1.0)."
    if not isinstance(prior, dist.Distribution):
        fail(argument, name_of(prior), "a distribution of NumPyro or a prior of dpjax", remedy, error=TypeError)
    if prior.support.is_discrete:
        fail(argument, f"{name_of(prior)}, which is of whole numbers", "a prior of real numbers", remedy)
    return NumberPrior(prior)
