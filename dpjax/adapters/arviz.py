"""Conversion of posteriors to ArviZ: InferenceData (0.x) or DataTree (1.x)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dpjax._util.validation import check_choice, check_free, check_key, check_no_gaps, fail
from dpjax.base import Key, Model, Parameters
from dpjax.diagnostics.frames import Labels
from dpjax.posterior.pointwise import obstacle_to_units, pointwise_log_likelihood
from dpjax.posterior.prediction import predict_from_prior

if TYPE_CHECKING:
    from dpjax.mixture.posterior import MixturePosterior
    from dpjax.posterior.posterior import Posterior
    from dpjax.private.runs.draws import PrivateDraws


RELEASED = "released"
"""The name of what was released, and of what is predicted of it."""

GROUPS = ("log_likelihood", "posterior_predictive", "prior", "prior_predictive", "constant_data")
"""What is computed if it is asked for."""

DRAWN = GROUPS[1:4]
"""What needs a key."""

NUM_PRIOR = 1_000
"""Draws from the prior."""

UNIT = "unit"
"""The axis of the records."""


def to_arviz(
    posterior: "Posterior", key: Key | None, *, groups: str | Sequence[str], units: Sequence[str] | None
) -> Any:
    """A posterior with the groups of draws, reports and the released value, and those asked for.

    Raises
    ------
    ImportError
        If arviz is not installed.
    """
    chosen, names = choose_groups(posterior, groups, key), check_units(posterior, units)
    found = make_groups(posterior)
    if key is not None:
        check_key("key", key)
        prediction_key, prior_key = jax.random.split(key)
    if "log_likelihood" in chosen:
        found["log_likelihood"] = {name_of_units(posterior): pointwise_log_likelihood(posterior)}
    if "posterior_predictive" in chosen:
        values = posterior.predict(prediction_key).values
        chain_and_draw = posterior.info["acceptance_rate"].shape
        found["posterior_predictive"] = {RELEASED: values.reshape(*chain_and_draw, *values.shape[1:])}
    if {"prior", "prior_predictive"} & set(chosen):
        parameters, prediction = predict_from_prior(prior_key, posterior.model, posterior.release, NUM_PRIOR)
        drawn = {"prior": with_derived(posterior.model, parameters), "prior_predictive": {RELEASED: prediction.values}}
        found |= {
            group: {name: np.asarray(leaf)[None] for name, leaf in drawn[group].items()}
            for group in drawn
            if group in chosen
        }
    n, observed = posterior.release.n, posterior.release.observed
    of_units = {name_of_units(posterior): (n,), RELEASED: np.shape(observed)} if posterior.release.fields else {}
    data = from_groups(found, posterior.labels, unit_axes(of_units, names))
    if "constant_data" in chosen:
        # Covariates have the names of their coefficients, which are of another shape.
        columns = {name: np.asarray(leaf) for name, leaf in posterior.model.known_columns.items()}
        axes = unit_axes({name: leaf.shape for name, leaf in columns.items()}, names)
        data["constant_data"] = from_groups({"constant_data": columns}, None, axes)["constant_data"]
    return data


def choose_groups(posterior: "Posterior", groups: str | Sequence[str], key: Key | None) -> tuple[str, ...]:
    """The groups asked for; for ``"all"`` those that there are."""
    release, model = posterior.release, posterior.model
    if isinstance(groups, str) and groups == "all":
        missing = ("log_likelihood",) * (obstacle_to_units(model, release) is not None)
        missing += ("prior", "prior_predictive") * (not model.draws_prior)
        missing += ("constant_data",) * (not model.known_columns)
        chosen = tuple(name for name in GROUPS if name not in missing)
    else:
        chosen = (groups,) if isinstance(groups, str) else tuple(groups)
        for name in chosen:
            check_choice("groups", name, ("all", *GROUPS), "Pass some of these in a list.")
    if "log_likelihood" in chosen:
        check_free(obstacle_to_units(model, release))
    if key is None and (drawn := [name for name in chosen if name in DRAWN]):
        fail("key", "None", f"a typed key, as {drawn[0]} is drawn", "Pass jax.random.key(1), say.", error=TypeError)
    if "constant_data" in chosen and not model.known_columns:
        fail("groups", "'constant_data' of a model without covariates", "a model that has some", "Leave it out.")
    return chosen


def check_units(posterior: "Posterior", units: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of the records, or an error unless each has one."""
    if units is None:
        return None
    n, given_names = posterior.release.n, (units,) if isinstance(units, str) else tuple(units)
    names = tuple(map(str, given_names))
    if not posterior.release.fields:
        fail("units", f"{len(names)} names, for a sum over the records", "None", "Leave it out.")
    check_no_gaps("units", given_names, "Pass a name for each record.")
    if len(names) != n or len(set(names)) != n:
        given = f"{len(names)} names, of which {len(set(names))} differ"
        fail("units", given, f"a name of its own for each of {n} records", "Pass them in the order of the release.")
    return names


def name_of_units(posterior: "Posterior") -> str:
    """What the log-likelihoods [chain, draw, n] are called: as what was released, if that has their shape."""
    return RELEASED if np.ndim(posterior.release.observed) == 1 else "units"


def unit_axes(shapes: dict[str, tuple[int, ...]], names: tuple[str, ...] | None) -> dict[str, Any]:
    """The axes of arrays [n, ...] of these shapes by name, the first of which is that of the records, and its names."""
    dims = {name: [UNIT, *(f"{name}_dim_{axis}" for axis in range(1, len(shape)))] for name, shape in shapes.items()}
    sizes = [shape[0] for shape in shapes.values()]
    return {"dims": dims, "coords": {UNIT: list(range(sizes[0]) if names is None else names)}} if sizes else {}


def with_derived(model: Model, parameters: Parameters) -> dict[str, Any]:
    """Draws [draw, ...] of parameters from the prior, and what is derived from them."""
    return {**parameters, **jax.vmap(model.derived)(parameters)}


def mixture_to_arviz(posterior: "MixturePosterior") -> Any:
    """A mixture posterior with the same groups."""
    released = {RELEASED: np.asarray(posterior.problem.values)}
    return from_groups({"posterior": posterior.draws, "sample_stats": posterior.info, "observed_data": released})


def private_to_arviz(draws: "PrivateDraws", num_warmup: int) -> Any:
    """Published draws, and nothing that is not private."""
    return from_groups({"posterior": draws.named_draws(num_warmup)})


def from_groups(
    groups: dict[str, dict[str, np.ndarray]], labels: Labels | None = None, axes: dict[str, Any] | None = None
) -> Any:
    """The ArviZ object of groups of arrays [chain, draw, ...] by name, whose entries may have names.

    `axes` has further ``"dims"`` and ``"coords"``.

    Raises
    ------
    ImportError
        If arviz is not installed.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError("arviz: not installed; expected for to_arviz. Run pip install arviz matplotlib.") from error
    # From version 1 on the argument is a dict of groups.
    from_dict: Any = arviz.from_dict
    named = dims_and_coords(labels or {})
    for part, entries in (axes or {}).items():
        named[part] = named.get(part, {}) | entries
    return from_dict(**groups, **named) if int(arviz.__version__.split(".")[0]) < 1 else from_dict(groups, **named)


def dims_and_coords(labels: Labels) -> dict[str, Any]:
    """The names of the axes of arrays, such as ``probabilities_dim_0`` as ArviZ has them, and of their entries."""
    dims = {name: [f"{name}_dim_{axis}" for axis in range(len(axes))] for name, axes in labels.items()}
    coords = {dim: list(names) for name in dims for dim, names in zip(dims[name], labels[name], strict=True)}
    return {"dims": dims, "coords": coords} if labels else {}


def make_groups(posterior: "Posterior") -> dict[str, dict[str, np.ndarray]]:
    """The groups as dicts of arrays, without reports that are not [chain, draw]."""
    chain_and_draw = np.shape(posterior.info["acceptance_rate"])
    reports = {name: leaf for name, leaf in posterior.info.items() if np.shape(leaf) == chain_and_draw}
    return {
        "posterior": dict(posterior.draws),
        "sample_stats": reports,
        "observed_data": {RELEASED: np.asarray(posterior.release.observed)},
    }
