"""Models compared by their evidence: how probable each made the release before it was known."""

from collections.abc import Mapping
from typing import Literal

import jax
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_choice, check_count, check_instance, check_key, describe, fail
from dpjax.base import Key, Model
from dpjax.diagnostics.summary import Summary
from dpjax.importance import ImportanceSample, importance_sample
from dpjax.models.checks import check_fit, check_prior_is_drawn
from dpjax.release import PrivateRelease
from dpjax.release.weights import check_unweighted
from dpjax.runtime.progress import ShowProgress
from dpjax.smc.result import SMCSample
from dpjax.smc.sample import sample_smc

__all__ = ["compare"]

NOTE = "the log evidence of each model, and probabilities of models that are equally probable beforehand"


@names_arguments
def compare(
    key: Key,
    models: Mapping[str, Model],
    release: PrivateRelease,
    *,
    method: Literal["smc", "importance"] = "smc",
    num_particles: int = 500,
    num_islands: int = 8,
    progress: ShowProgress = True,
) -> Summary:
    """The evidence log p(release value | model) of several models, with errors, best first.

    A release that is a sum over all records is one observation, so that nothing can be left out and predicted from the
    rest, as by LOO. What can be compared is how probable each model made the whole release. This depends on the priors:
    with a prior ten times as wide the evidence of a model can fall by log 10 for each parameter.

    Parameters
    ----------
    key
        One typed key.
    models
        The models by name, two or more.
    release
        The release.
    method
        ``"smc"`` by `dpjax.sample_smc`, or ``"importance"`` by `dpjax.importance_sample`, which is faster for few
        parameters and strong noise.
    num_particles
        The particles of each island.
    num_islands
        The islands. By importance sampling as many draws are made from the prior as there are particles on all islands.
    progress
        See `dpjax.sample`.

    Returns
    -------
    Summary
        A row for each model. ``log_evidence`` and its standard error ``se``; ``difference`` from the best model and its
        standard error ``se_difference``. ``probability`` is that of the model among these.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two models, one does not fit the release, or has no draws from its prior.

    Warns
    -----
    UserWarning
        As the method does for each model.

    Examples
    --------
    >>> import dpjax, jax
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> priors = {"wide": dpjax.models.NormalPrior(0.0, 50.0), "narrow": dpjax.models.NormalPrior(0.0, 5.0)}
    >>> models = {name: dpjax.models.normal(prior, variance=4.0) for name, prior in priors.items()}
    >>> table = dpjax.compare(jax.random.key(1), models, release, method="importance", progress=False)
    >>> table.rows
    ('narrow', 'wide')
    """
    check_key("key", key)
    check_choice("method", method, ("smc", "importance"), "Leave it out for 'smc'.")
    check_count("num_particles", num_particles, "Pass a whole number of at least 2.", least=2)
    check_count("num_islands", num_islands, "Errors come from the variation between islands: pass 2 or more.", least=2)
    check_instance("models", models, Mapping, 'Pass {"one": model, "other": model}.')
    if len(models) < 2:
        fail("models", f"{len(models)}", "two or more models by name", "For one there is dpjax.sample_smc.")
    for name, model in models.items():
        if not isinstance(name, str):
            fail("models", f"the name {describe(name)}", "names of models", "Pass strings.", error=TypeError)
        check_instance(f"models[{name!r}]", model, Model, "Pass models such as dpjax.models.normal makes.")
        check_fit(model, release)
        check_unweighted(model, release, f"models[{name!r}]", "evidence")
        check_prior_is_drawn(model)
    found = []
    for place, model in enumerate(models.values()):
        own_key = jax.random.fold_in(key, place)
        sample: SMCSample | ImportanceSample
        if method == "smc":
            sample = sample_smc(
                own_key, model, release, num_particles=num_particles, num_islands=num_islands, progress=progress
            )
        else:
            sample = importance_sample(own_key, model, release, num_particles * num_islands, progress=progress)
        found.append((sample.log_marginal_likelihood, sample.log_marginal_likelihood_error))
    evidence, error = np.array(found).T
    order = np.argsort(-evidence, kind="stable")
    evidence, error, best = evidence[order], error[order], order[0]
    weights = np.exp(evidence - evidence[0])
    columns = {
        "log_evidence": evidence,
        "se": error,
        "difference": evidence - evidence[0],
        "se_difference": np.where(order == best, 0.0, np.hypot(error, error[0])),
        "probability": weights / np.sum(weights),
    }
    return Summary(tuple(list(models)[place] for place in order), columns, NOTE)
