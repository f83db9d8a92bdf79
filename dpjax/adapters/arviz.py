"""Conversion of posteriors to ArviZ: InferenceData (0.x) or DataTree (1.x)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dpjax.diagnostics.frames import Labels

if TYPE_CHECKING:
    from dpjax.mixture.posterior import MixturePosterior
    from dpjax.posterior.posterior import Posterior
    from dpjax.private.runs.draws import PrivateDraws


def to_arviz(posterior: "Posterior") -> Any:
    """A posterior with the groups `posterior`, `sample_stats` and `observed_data` (the released value).

    Raises
    ------
    ImportError
        If arviz is not installed.
    """
    return from_groups(make_groups(posterior), posterior.labels)


def mixture_to_arviz(posterior: "MixturePosterior") -> Any:
    """A mixture posterior with the same groups."""
    released = {"released": np.asarray(posterior.problem.values)}
    return from_groups({"posterior": posterior.draws, "sample_stats": posterior.info, "observed_data": released})


def private_to_arviz(draws: "PrivateDraws", num_warmup: int) -> Any:
    """Published draws, and nothing that is not private."""
    return from_groups({"posterior": draws.named_draws(num_warmup)})


def from_groups(groups: dict[str, dict[str, np.ndarray]], labels: Labels | None = None) -> Any:
    """The ArviZ object of groups of arrays [chain, draw, ...] by name, whose entries may have names.

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
        "observed_data": {"released": np.asarray(posterior.release.observed)},
    }
