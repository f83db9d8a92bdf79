"""The multivariate Gaussian kernel N(mean, covariance) with its Normal-inverse-Wishart base measure."""

from dataclasses import dataclass
from math import log, pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import multigammaln

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_positive, fail, is_traced, read_numbers
from dpjax.base import Array, Key
from dpjax.mixture.base import Theta
from dpjax.models.arguments import check_definite, check_degrees, check_finite, hold_arrays
from dpjax.numerics.linear_algebra import LOG_TWO_PI, draw_bartlett, factorize, product, solve_lower

__all__ = ["NormalInverseWishart", "centred_log_density"]

UNROLLED = 6
"""Largest dimension for which triangular systems are solved by one unrolled expression."""


@frozen_pytree
@dataclass(frozen=True)
class NormalInverseWishart(NamesArguments):
    """Records y ~ N(μ, Σ) [d] with the base measure Σ ~ IW(degrees, scale), μ | Σ ~ N(mean, Σ / precision).

    The parameters are named ``"mean"`` [d] and ``"cholesky"`` [d, d], the lower Cholesky factor of the covariance:
    ``theta["cholesky"] @ theta["cholesky"].swapaxes(-1, -2)`` is Σ. Draws of them given a cluster are exact. In one
    dimension it is `NormalInverseGamma` with ``shape = degrees / 2`` and half the scale.

    Parameters
    ----------
    mean : [d]
        The prior mean of a cluster's mean.
    precision : []
        The number of records that the prior mean counts for (κ).
    degrees : []
        The degrees of freedom ν, above d - 1; the mean of the covariance is scale / (ν - d - 1).
    scale : [d, d]
        The scale matrix Ψ.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is not finite, the scale is not symmetric positive definite, the precision not
        positive or the degrees not above d - 1.

    Examples
    --------
    >>> import dpjax, jax
    >>> import numpy as np
    >>> component = dpjax.mixture.NormalInverseWishart(mean=np.zeros(2), precision=0.1, degrees=4.0, scale=np.eye(2))
    >>> component.sample_prior(jax.random.key(1), 3)["mean"].shape
    (3, 2)
    """

    mean: Array | np.ndarray | list[float]
    precision: Array | float
    degrees: Array | float
    scale: Array | np.ndarray | list[list[float]]

    def __post_init__(self) -> None:
        check_finite("mean", self.mean)
        check_positive("precision", self.precision, "Pass how many records the prior mean is worth.")
        shape = np.shape(self.mean)
        if len(shape) != 1 or shape == (0,):
            fail("mean", f"shape {list(shape)}", "shape [d]", "Use NormalInverseGamma for records that are numbers.")
        if not is_traced(self.scale):
            read_numbers("scale", self.scale, f"shape {list(shape * 2)}", "Pass a matrix [d, d].")
        if np.shape(self.scale) != shape * 2:
            fail("scale", f"shape {list(np.shape(self.scale))}", f"shape {list(shape * 2)}", "Pass a matrix [d, d].")
        check_definite("scale", self.scale, "Pass the scale matrix of the inverse Wishart distribution.")
        check_degrees(self.degrees, shape[0])
        hold_arrays(self)

    @property
    def dim(self) -> int:
        """The number d of a record's coordinates."""
        return np.shape(self.mean)[0]

    def sample_prior(self, key: Key, size: int) -> Theta:
        """Independent draws [size, ...] from the base measure."""
        num_features = self.dim * (self.dim + 3) // 2
        return self._draw(key, *self.posterior(jnp.zeros(size), jnp.zeros((size, num_features))))

    def sample(self, key: Key, theta: Theta) -> Array:
        """One record [n, d] for each set of parameters [n, ...]."""
        mean = theta["mean"]
        return mean + times(theta["cholesky"], jax.random.normal(key, mean.shape, mean.dtype))

    def log_density(self, record: Array, theta: Theta) -> Array:
        """log N(y | μ, Σ) [] of one record."""
        return centred_log_density(record - theta["mean"], theta["cholesky"])

    def features(self, record: Array) -> Array:
        """The deviation from the prior mean in units of the scale's factor, and its products [d + d (d + 1) / 2].

        In these units a cluster's posterior scale matrix is the identity plus a sum over its records, which keeps
        rounding from making it indefinite.
        """
        factor, deviation = self._factor(record.dtype), record - jnp.asarray(self.mean, record.dtype)
        scaled = solve_lower(factor, deviation[:, None])[:, 0]
        rows, columns = np.tril_indices(self.dim)
        return jnp.concatenate([scaled, scaled[rows] * scaled[columns]])

    def update(self, key: Key, theta: Theta, counts: Array, totals: Array) -> Theta:
        """An exact draw [H, ...] given the clusters' statistics."""
        return self._draw(key, *self.posterior(counts, totals))

    def posterior(self, counts: Array, totals: Array) -> tuple[Array, Array, Array, Array]:
        """The Normal-inverse-Wishart posteriors given the clusters' statistics.

        Returns
        -------
        mean
            Their means [H, d].
        precision
            Their precisions [H].
        degrees
            Their degrees of freedom [H].
        scale_cholesky
            The lower Cholesky factors [H, d, d] of their scale matrices.
        """
        dim, factor = self.dim, self._factor(counts.dtype)
        precision = jnp.asarray(self.precision, counts.dtype) + counts
        shift = totals[:, :dim] / precision[:, None]
        spread = symmetric(totals[:, dim:], dim) - precision[:, None, None] * shift[:, :, None] * shift[:, None, :]
        root = factorize_above_one(spread + jnp.eye(dim, dtype=counts.dtype)[None])
        mean = jnp.asarray(self.mean, counts.dtype)[None] + times(factor[None], shift)
        return mean, precision, jnp.asarray(self.degrees, counts.dtype) + counts, product(factor, root)

    def log_evidence(self, counts: Array, totals: Array) -> Array:
        """The log-density [H] of the records of each cluster with its parameters integrated out."""
        dim = self.dim
        _, precision, degrees, root = self.posterior(counts, totals)
        prior_precision, prior_degrees = (jnp.asarray(one, counts.dtype) for one in (self.precision, self.degrees))
        of_precision = dim * jnp.log(prior_precision / precision) / 2
        of_degrees = multigammaln(degrees / 2, dim) - multigammaln(prior_degrees / 2, dim)
        of_scale = prior_degrees * log_root(self._factor(counts.dtype)) - degrees * log_root(root)
        return of_precision + of_degrees + of_scale - counts * dim * log(pi) / 2

    def _factor(self, dtype: Any) -> Array:
        """The lower Cholesky factor [d, d] of the scale matrix."""
        return factorize(jnp.asarray(self.scale, dtype))

    def _draw(self, key: Key, mean: Array, precision: Array, degrees: Array, scale_cholesky: Array) -> Theta:
        """Draws [H, ...] from Normal-inverse-Wishart distributions.

        Bartlett's decomposition, from the last coordinate on: for TᵀT Wishart and Ψ = L Lᵀ, L T⁻¹ is the lower Cholesky
        factor of an inverse Wishart matrix, which is not formed.
        """
        key_gamma, key_below, key_mean = jax.random.split(key, 3)
        dim, dtype = mean.shape[1], mean.dtype
        triangle = draw_bartlett(key_gamma, key_below, degrees[:, None] + jnp.arange(1 - dim, 1, dtype=dtype)[None])
        cholesky = jax.lax.linalg.triangular_solve(triangle, scale_cholesky, left_side=False, lower=True)
        normal = jax.random.normal(key_mean, mean.shape, dtype)
        return {"mean": mean + times(cholesky, normal) / jnp.sqrt(precision)[:, None], "cholesky": cholesky}


def centred_log_density(deviation: Array, cholesky: Array) -> Array:
    """The log-density [] of N(0, L Lᵀ) at a deviation [d], for a lower factor L [d, d]."""
    whitened = forward(cholesky, deviation)
    return -(jnp.sum(jnp.square(whitened)) + deviation.size * LOG_TWO_PI) / 2 - log_root(cholesky)


def forward(cholesky: Array, vector: Array) -> Array:
    """L⁻¹ v [d]; unrolled for a few dimensions, which compiles to one vectorised loop over slots and records."""
    if vector.size > UNROLLED:
        return solve_lower(cholesky, vector[:, None])[:, 0]
    inverses = 1 / jnp.diagonal(cholesky)
    solved: list[Array] = []
    for row in range(vector.size):
        rest = vector[row]
        for column in range(row):
            rest = rest - cholesky[row, column] * solved[column]
        solved.append(rest * inverses[row])
    return jnp.stack(solved)


def log_root(cholesky: Array) -> Array:
    """Half the log-determinant [...] of L Lᵀ, for lower factors L [..., d, d]."""
    return jnp.sum(jnp.log(jnp.diagonal(cholesky, axis1=-2, axis2=-1)), axis=-1)


def times(matrices: Array, vectors: Array) -> Array:
    """The products [..., d] of matrices [..., d, d] and vectors [..., d], by a sum: faster than many small products."""
    return jnp.sum(matrices * vectors[..., None, :], axis=-1)


def symmetric(lower: Array, dim: int) -> Array:
    """Symmetric matrices [H, d, d] of their lower triangles [H, d (d + 1) / 2], row by row."""
    places = np.zeros((dim, dim), int)
    rows, columns = np.tril_indices(dim)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)
    return lower[:, places]


def factorize_above_one(matrices: Array) -> Array:
    """The lower Cholesky factors [H, d, d] of matrices whose eigenvalues are at least 1 but for rounding.

    All pivots of such a matrix are at least 1; a pivot that rounding made smaller is set to 1.
    """
    dim, columns = matrices.shape[-1], []
    for place in range(dim):
        pivot = jnp.sqrt(jnp.maximum(matrices[:, place, place], 1))
        below = np.arange(dim) > place
        column = jnp.where(below[None], matrices[:, :, place], 0) / pivot[:, None]
        column = column.at[:, place].set(pivot)
        matrices = matrices - column[:, :, None] * column[:, None, :]
        columns.append(column)
    return jnp.stack(columns, axis=-1)
