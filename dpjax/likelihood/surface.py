"""What a climb asks of a likelihood, whether it is imputed or approximated: score and information at given parameters.

All vectors are unconstrained parameters. A leading axis [release] stands for several releases, or several fits to one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax.base import Array, Key, Model, Parameters
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.release import PrivateRelease

__all__ = ["Moments", "Surface", "natural_at", "parameters_at"]


class Moments(NamedTuple):
    """Averages of the derivatives of the complete-data log-density given the release, for independent groups.

    Attributes
    ----------
    score
        Of the gradient [..., k]: by Fisher's identity the score of the release's likelihood.
    square
        Of the gradient's outer product [..., k, k].
    curvature
        Of minus the Hessian [..., k, k]; less the covariance of the gradient it is the information (Louis 1982).
    scale
        A positive semi-definite matrix [..., k, k] of the size of `curvature` at any parameters, also far off.
    num_nonfinite
        How many derivatives were left out because they were not finite [...].
    """

    score: Any
    square: Any
    curvature: Any
    scale: Any
    num_nonfinite: Any

    def kept_where_finite(self) -> "Moments":
        """Those of releases and groups [release, group, ...] on the host, with zeros where they are not finite."""
        fine = np.isfinite(self.score).all(axis=-1) & np.isfinite(self.curvature).all(axis=(-2, -1))
        kept = (np.where(fine.reshape(*fine.shape, *[1] * (leaf.ndim - fine.ndim)), leaf, 0.0) for leaf in self)
        return Moments(*kept)._replace(num_nonfinite=(~fine).astype(float))


@dataclass(frozen=True, eq=False, kw_only=True)
class Surface(ABC):
    """The likelihood of a release as a function of unconstrained parameters.

    Parameters
    ----------
    model
        The model, in the form of the latent data.
    release
        The release, in the form of the latent data.
    """

    model: Model
    release: PrivateRelease

    METHOD: ClassVar[str]
    """How the likelihood is computed, in words."""

    @abstractmethod
    def evaluate(self, key: Key, values: Any, vectors: np.ndarray, chains: Any, length: int) -> tuple[Moments, Any]:
        """The moments [release, group, ...] at vectors [release, k], and the chains [release, group, ...] after that.

        Parameters
        ----------
        values
            What was released [release, ...], as in `values`.
        chains
            Where the chains are; they are carried from one evaluation to the next.
        length
            How many sweeps each chain makes.
        """

    @abstractmethod
    def copy(self, chains: Any, count: int) -> Any:
        """The chains [1, group, ...] of one fit, as many as it has, as those of several [count, group, ...]."""

    @abstractmethod
    def simulate(self, key: Key, vector: np.ndarray, count: int) -> tuple[Any, Any]:
        """Released values [count, ...] of new records at a vector [k], with chains [count, group, ...] for each."""

    @property
    def is_exact(self) -> bool:
        """Whether the moments have no Monte Carlo error."""
        return False

    @property
    def values(self) -> Any:
        """The released value [1, ...], as one of several."""
        return self.release.observed[None]

    def repeat(self, count: int) -> Any:
        """The released value [count, ...], for several fits to it."""
        return jnp.broadcast_to(self.values, (count, *self.values.shape[1:]))

    def settings(self, precision: float, num_steps: int) -> dict[str, Any]:
        """How precise a climb is and how many sweeps it makes at most, where so much is asked for."""
        return {"precision": precision, "num_steps": num_steps}

    def check(self, key: Key, vector: np.ndarray) -> None:
        """Raise or warn if the likelihood is not what it should be at a vector [k]."""
        return

    def fitted_around(self, vector: np.ndarray, steps: np.ndarray) -> "Surface | None":
        """The likelihood fitted to a vector [k] and what is some standard errors [m, k] away; None if it is."""
        del vector, steps
        return None

    def remarks(self, vector: np.ndarray) -> tuple[str, ...]:
        """What is to be known of the likelihood at a vector [k]."""
        del vector
        return ()

    def log_likelihood(self, vector: np.ndarray) -> tuple[float, float]:
        """The log-density of the release at a vector [k], and its standard error, where no chains are needed for it."""
        raise NotImplementedError

    def natural(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Parameters and derived quantities in one vector [..., p], and their Jacobian [..., p, k]."""
        flat = jnp.asarray(np.reshape(vectors, (-1, np.shape(vectors)[-1])), float)
        values, slopes = (np.asarray(leaf, float) for leaf in natural_at.unoptimized(self.model, flat))
        leading = np.shape(vectors)[:-1]
        return values.reshape(*leading, *values.shape[1:]), slopes.reshape(*leading, *slopes.shape[1:])

    def unravel(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """The named arrays of a vector [p] of parameters and derived quantities."""
        shapes = jax.eval_shape(lambda parameters: with_derived(self.model, parameters), parameter_shapes(self.model))
        stops = np.cumsum([leaf.size for leaf in shapes.values()])
        parts = np.split(np.asarray(flat), stops[:-1])
        return {name: part.reshape(leaf.shape) for (name, leaf), part in zip(shapes.items(), parts, strict=True)}


def with_derived(model: Model, parameters: Parameters) -> Parameters:
    """The parameters and what is derived from them, in the order of their names."""
    together = {**parameters, **model.derived(parameters)}
    return {name: together[name] for name in sorted(together)}


def parameters_at(model: Model, vector: Array) -> Parameters:
    """The parameters on their natural scale at an unconstrained vector [k]."""
    shapes = parameter_shapes(model)
    free = jax.eval_shape(model.unconstrain, shapes)
    _, unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), free))
    return model.constrain(unravel(vector))


@jit_model
def natural_at(model: Model, vectors: Array) -> tuple[Array, Array]:
    """Parameters and derived quantities [m, p] at vectors [m, k], and their Jacobians [m, p, k]."""

    def flat(vector: Array) -> tuple[Array, Array]:
        together = with_derived(model, parameters_at(model, vector))
        values = jnp.concatenate([jnp.ravel(leaf) for leaf in together.values()])
        return values, values

    slopes, values = jax.vmap(jax.jacfwd(flat, has_aux=True))(vectors)
    return values, slopes
