"""A density at points of a grid, as the draws of a mixture tell it."""

from typing import NamedTuple

import numpy as np

__all__ = ["Density"]


class Density(NamedTuple):
    """The posterior of a density at points of a grid, each [points].

    Attributes
    ----------
    grid
        The points.
    mean
        The posterior mean: the density of a new record.
    lower
        The pointwise lower credible bound.
    upper
        The pointwise upper credible bound.
    mcse
        The Monte Carlo standard error of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones(3)
    >>> density = Density(np.arange(3.0), mean=ones, lower=0.8 * ones, upper=1.2 * ones, mcse=0.01 * ones)
    >>> bool(np.all(density.lower < density.upper))
    True
    """

    grid: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    mcse: np.ndarray
