"""The likelihood of a released sum in a NumPyro model of the user's own, with the sum taken to be Normal."""

from typing import Any

import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist

from dpjax._util.validation import check_free, fail, name_of
from dpjax.base import Array
from dpjax.clt.density import obstacle_of_noise, release_noise
from dpjax.mechanisms.smoothed import smoothed
from dpjax.release import Release
from dpjax.release.summed import as_sum

__all__ = ["release_factor"]

OF_RECORDS = "For values of single records, pass their dpjax.marginal_likelihood at the parameters to numpyro.factor."


def release_factor(name: str, release: Release, mean: Any, covariance: Any) -> None:
    """Observe a released sum inside a NumPyro model, with the sum of the records taken to be Normal given parameters.

    The model then has no records, and any of NumPyro's samplers, such as NUTS, draws its parameters.

    Parameters
    ----------
    name
        The name of the observed site. Latent scales of Laplace noise are the site ``{name}_scale``.
    release
        One value of a sum over n records, with Gaussian or Laplace noise or their discrete forms.
    mean : [d]
        The mean of one record's contribution to the sum, as a function of the model's parameters; averaged over
        records that are not identically distributed.
    covariance : [d, d]
        The covariance of one record's contribution, averaged likewise.

    Raises
    ------
    TypeError, ValueError
        If the release is no noisy sum over a known number of records, its noise is another, or shapes do not fit.

    Notes
    -----
    The sum S given the parameters is taken to be N(n mean, n covariance), the approximation of Bernstein and Sheldon
    (2018). Its error is that of the central limit theorem: of order 1/√n times the skewness of one contribution, and
    not visible in the draws. It is small beside noise that is wider than the sum itself. Compare with `dpjax.sample`
    or `dpjax.sample_clt` on a model of the records. Normal noise is exact; Laplace noise is, as a scale mixture; of
    their discrete forms the variance is.

    Examples
    --------
    >>> from dpjax.adapters.numpyro.factor import release_factor
    >>> import dpjax, jax.numpy as jnp, numpyro
    >>> release = dpjax.Release([62.0], dpjax.Laplace(5.0), dpjax.statistics.total("y"), n=100)
    >>> def model():
    ...     rate = numpyro.sample("rate", numpyro.distributions.Gamma(2.0, 2.0))
    ...     release_factor("visits", release, jnp.array([rate]), jnp.array([[rate]]))
    >>> trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace()
    >>> trace["visits"]["value"].tolist(), trace["visits_scale"]["value"].shape
    ([62.0], (1,))
    """
    if not isinstance(name, str):
        fail("name", name_of(name), "the name of a site", "Pass a string.", error=TypeError)
    release = as_sum(release, OF_RECORDS)
    size = release.value.size
    mean, covariance = (
        check_shape(argument, value, shape)
        for argument, value, shape in (("mean", mean, (size,)), ("covariance", covariance, (size, size)))
    )
    variance = noise_variance(name, release)
    of_value = dist.MultivariateNormal(release.n * mean, release.n * covariance + jnp.diag(variance))
    numpyro.sample(name, of_value, obs=release.value)


def check_shape(argument: str, value: Any, shape: tuple[int, ...]) -> Array:
    """The value as an array, or an error unless it has this shape."""
    try:
        array = jnp.asarray(value, float)
    except (TypeError, ValueError):
        remedy = "Pass an array of the model's parameters."
        fail(argument, name_of(value), f"numbers of shape {list(shape)}", remedy, error=TypeError)
    if array.shape != shape:
        remedy = "One record's contribution has as many numbers as the value."
        fail(argument, f"shape {list(array.shape)}", f"shape {list(shape)}", remedy)
    return array


def noise_variance(name: str, release: Release) -> Array:
    """The variance [d] of the noise, with latent factors where it is Laplace noise: a scale mixture of Normal noise."""
    if not release.is_noisy_sum:
        expected, remedy = "a noisy sum", "Use dpjax.sample."
        fail("release", f"values drawn by {name_of(release.mechanism)}", expected, remedy, error=TypeError)
    check_free(obstacle_of_noise(release.mechanism, release.value.size))
    noise = release_noise(release.with_mechanism(smoothed(release.mechanism)), jnp.zeros_like(release.value))
    if noise.held:
        expected = "Gaussian or Laplace noise, or their discrete forms"
        fail("release", f"noise of {name_of(noise.held[0][0])}", expected, "Use dpjax.sample_clt.", error=TypeError)
    if not noise.scaled.size:
        return noise.variance
    factors = numpyro.sample(f"{name}_scale", dist.Exponential(1.0).expand([noise.scaled.size]).to_event(1))
    return noise.variance * jnp.ones_like(noise.variance).at[noise.scaled].set(factors)
