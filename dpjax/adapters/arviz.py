"""Conversion of posteriors to ArviZ: InferenceData (0.x) or DataTree (1.x)."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior


def to_arviz(posterior: "Posterior") -> Any:
    """A posterior with the groups `posterior`, `sample_stats` and `observed_data` (the released value).

    Raises
    ------
    ImportError
        If arviz is not installed.
    """
    return from_groups(make_groups(posterior))


def from_groups(groups: dict[str, dict[str, np.ndarray]]) -> Any:
    """The ArviZ object of groups of arrays [chain, draw, ...] by name.

    Raises
    ------
    ImportError
        If arviz is not installed.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError('arviz: not installed; expected for to_arviz. Run pip install "dpjax[plots]".') from error
    # From version 1 on the argument is a dict of groups.
    from_dict: Any = arviz.from_dict
    return from_dict(**groups) if int(arviz.__version__.split(".")[0]) < 1 else from_dict(groups)


def make_groups(posterior: "Posterior") -> dict[str, dict[str, np.ndarray]]:
    """The groups as dicts of arrays, without reports that are not [chain, draw]."""
    chain_and_draw = np.shape(posterior.info["acceptance_rate"])
    reports = {name: leaf for name, leaf in posterior.info.items() if np.shape(leaf) == chain_and_draw}
    return {
        "posterior": dict(posterior.draws),
        "sample_stats": reports,
        "observed_data": {"released": np.asarray(posterior.release.observed)},
    }
