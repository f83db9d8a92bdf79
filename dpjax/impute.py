"""Imputation of the records alone, at known parameters, for BlackJAX's loops."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Imputation, ImputationInfo, Key, Latent, Model, Parameters, Records, SamplingAlgorithm
from dpjax.gibbs import make_plan
from dpjax.imputation.offers import init_latent
from dpjax.release import LocalRelease, Release
from dpjax.validation import fail


def impute(
    model: Model, release: Release | LocalRelease, parameters: Parameters, imputation: Imputation | None = None
) -> SamplingAlgorithm:
    """A BlackJAX sampling algorithm that leaves p(records | parameters, release) invariant.

    Parameters
    ----------
    model
        The complete-data model.
    release
        What was released.
    parameters
        The parameters, which stay as they are, on their natural scale.
    imputation
        ``imwg(...)``, ``soma(...)`` or an `Imputation` of your own; IMwG by default.

    Returns
    -------
    SamplingAlgorithm
        ``init(records, rng_key=None)`` takes records [n, ...], such as ``model.sample_records(key, parameters, n)``,
        and needs no key; ``step(rng_key, latent)`` makes one sweep.

    Raises
    ------
    TypeError, ValueError
        If the parts do not fit; see `dpjax.gibbs`.
    """
    plan = make_plan(model, release, imputation)
    known = check_parameters(model, parameters)
    kernel = plan.imputation(model, release)

    def init(records: Records, rng_key: Key | None = None) -> Latent:
        del rng_key
        return init_latent(release, records)

    def step(rng_key: Key, latent: Latent) -> tuple[Latent, ImputationInfo]:
        return kernel(rng_key, latent, known)

    return SamplingAlgorithm(init, step)


def check_parameters(model: Model, parameters: Parameters) -> Parameters:
    """The parameters in the types of the model's own, or an error unless they have its names and shapes."""
    expected = jax.eval_shape(model.sample_prior, jax.eval_shape(jax.random.key, 0))
    remedy = "Pass a dict with one array for each parameter, on its natural scale."
    if not isinstance(parameters, dict):
        fail("parameters", type(parameters).__name__, f"a dict of {sorted(expected)}", remedy, error=TypeError)
    if set(parameters) != set(expected):
        fail("parameters", f"a dict of {sorted(parameters)}", f"a dict of {sorted(expected)}", remedy)
    for name, leaf in expected.items():
        if np.shape(parameters[name]) != leaf.shape:
            given = f"shape {list(np.shape(parameters[name]))}"
            fail(f"parameters[{name!r}]", given, f"shape {list(leaf.shape)}", remedy)
    return {name: jnp.asarray(parameters[name], leaf.dtype) for name, leaf in expected.items()}
