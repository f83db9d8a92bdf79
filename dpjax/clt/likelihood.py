"""The likelihood of parameters by the Normal approximation of the sum: one more kind that parameters alone move by."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NoReturn, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax._util.spelling import names_arguments
from dpjax._util.threads import one_blas_thread
from dpjax._util.validation import check_count, check_flag, fail, name_of
from dpjax.base import Array, Key, Model, Parameters, Records, static
from dpjax.clt.accuracy import check_errors, choose_draws, measure_errors, measure_skewness, warn_of_skewness
from dpjax.clt.density import CltProblem, build_problem, release_noise, simulate_variance
from dpjax.clt.inputs import check_problem, default_points
from dpjax.clt.latent import SCALES, SUMS, WithNoise, with_noise
from dpjax.clt.moments import Source, is_small, make_points
from dpjax.clt.number import with_place
from dpjax.clt.starts import Starts, check_starts, find_starts, unravel_of
from dpjax.data_augmentation.summed_out import Likelihood, SummedOut
from dpjax.mechanisms.smoothed import smoothed
from dpjax.models.data_sets import NUMBER
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics.linear_algebra import factorize, product
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum
from dpjax.release.unknown_count import is_unknown

__all__ = ["ByNormalSum", "NormalSum", "normal_sum"]

REFINEMENT = 2
"""How much finer the rule is that the quadrature is compared with."""

MOST_SPACING = 1 / 8
"""Largest distance of neighbouring real numbers where there is a place between whole numbers."""


class NormalSum(Likelihood):
    """The log-density of a noisy sum given the parameters and latent noise, with the sum of records taken to be Normal.

    Attributes
    ----------
    model
        The model of the records.
    release
        What was released, with real-valued noise.
    rules
        The points over which moments are summed, and finer ones with which these are compared.
    simulated
        Variances [d] for mechanisms of unknown variance.
    source
        The source of the moments.
    num_points
        How many points there are.
    """

    model: Model
    release: Release
    rules: tuple[Any, Any]
    simulated: Array
    source: Source = static()
    num_points: int = static()

    @property
    def problem(self) -> CltProblem:
        """The parts of the density."""
        return build_problem(self.model, self.release, self.source, self.rules[0], self.simulated)

    @property
    def is_large(self) -> bool:
        """Whether a gradient takes longer than what else a step is made of."""
        return not is_small(self.model, self.release, self.source, self.rules[0])

    def build(self) -> Any:
        """See `Likelihood`."""
        problem = self.problem
        return lambda parameters: problem.log_likelihood(*split_noise(parameters))

    def extend(self, model: Model) -> Model:
        """The model with latent noise, and the place of an unknown number, among its parameters."""
        noise = release_noise(self.release, self.simulated)
        return with_noise(with_place(model, self.release), noise.scaled.size, noise.held_places.size)

    def sample_records(self, key: Key, parameters: Parameters) -> Records:
        """A draw of an unknown number of records; of the records themselves nothing is drawn."""
        if not is_unknown(self.release):
            return {}
        own, scales, sums = split_noise(parameters)
        uniform = jax.random.uniform(key, dtype=self.release.value.dtype)
        return {NUMBER: self.problem.draw_number(uniform, own, scales, sums)}

    def find_starts(self, key: Key, model: Model, num_chains: int) -> Starts:
        """Starts about modes that scoring steps find, with latent noise at its centre; see `find_starts`."""
        search = find_starts if self.is_large else find_starts.unoptimized
        found = search(key, self.model, self.release, self.source, self.rules[0], self.simulated, num_chains)
        check_starts(found, self.release)
        if not isinstance(model, WithNoise):
            return found
        return widen.unoptimized(model, with_place(self.model, self.release), found, num_chains)

    def examine(self, key: Key, draws: Parameters) -> dict[str, Any]:
        """The errors of the quadrature and the skewness of the sum, at draws [chain, draw, ...] of the posterior.

        Raises
        ------
        ValueError
            If the quadrature is too coarse, or so are real numbers for an unknown number of records.
        """
        check_told_apart(draws, self.release.value.dtype)
        some, info = choose_draws(draws), {}
        with one_blas_thread():
            if not self.source.is_exact:
                errors = measure_errors(self.model, self.release, self.source, *self.rules, self.simulated, some)
                check_errors(errors, self.num_points, name_of(self.release.statistic))
                info["quadrature_error"] = np.asarray(errors)
            info["skewness"] = measure_skewness(key, self.model, self.release, self.simulated, some)
        warn_of_skewness(info["skewness"])
        return info


def check_told_apart(draws: Parameters, dtype: Any) -> None:
    """Raise if an unknown number of records is so large that real numbers hardly lie between two of them."""
    most = float(np.max(draws.get(NUMBER, np.zeros(1))))
    if most * float(jnp.finfo(dtype).eps) > MOST_SPACING:
        expected = "a number with real numbers between it and the next one"
        remedy = "Call jax.config.update('jax_enable_x64', True) first."
        fail("release", f"an unknown number of some {most:.2g} records, in {dtype}", expected, remedy)


def split_noise(parameters: Parameters) -> tuple[Parameters, Array, Array]:
    """The parameters without latent noise, the scores of its variances, and those of the noise itself."""
    own = {name: leaf for name, leaf in parameters.items() if name not in (SCALES, SUMS)}
    none = jnp.zeros(0)
    return own, parameters.get(SCALES, none), parameters.get(SUMS, none)


@partial(jit_model, static_argnames=("num_chains",))
def widen(model: Model, own: Model, starts: Starts, num_chains: int) -> Starts:
    """The starts of a model with latent noise, at its centre and standardised as it is, from those of one without."""
    shapes = parameter_shapes(model)
    noise = {name: jnp.zeros(shapes[name].shape, shapes[name].dtype) for name in (SCALES, SUMS) if name in shapes}
    several = {name: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)) for name, leaf in noise.items()}
    tuning, unravel = starts.tuning, unravel_of(own)

    def place(vector: Array) -> Array:
        return ravel_pytree(unravel(vector) | noise)[0]

    basis = jax.vmap(place)(jnp.eye(tuning.location.size, dtype=tuning.location.dtype))
    columns = product(basis.T, tuning.factor)
    covariance = product(columns, columns.T) + jnp.diag(1 - jnp.sum(basis, axis=0))
    tuning = tuning._replace(location=place(tuning.location), factor=factorize(covariance))
    return starts._replace(parameters=starts.parameters | several, tuning=tuning)


@dataclass(frozen=True)
class ByNormalSum(SummedOut):
    """The choice to take the sum of the records to be Normal; see `normal_sum`.

    Parameters
    ----------
    num_points
        Points of the quadrature; None for the default.
    held
        Whether the covariance is that of the mode.
    """

    num_points: int | None = None
    held: bool = False

    is_exact: ClassVar[bool] = False

    def with_records(self, wanted: bool) -> Self:
        """The choice as it is: there are no records."""
        del wanted
        return self

    def __call__(self, model: Model, release: PrivateRelease) -> NoReturn:
        """Refuse to impute records."""
        del model, release
        remedy = "Use dpjax.sample(..., likelihood=dpjax.normal_sum()), or impute the records."
        fail("imputation", "normal_sum()", "one that draws records", remedy)

    def sum_out(self, model: Model, release: PrivateRelease) -> NormalSum:
        """The likelihood, or an error if the release is no noisy sum whose moments are known."""
        source = check_problem(model, release, self.num_points, may_be_unknown=True)
        given: Any = release if is_unknown(release) else as_sum(release)
        real = given.with_mechanism(smoothed(given.mechanism))
        num_points = self.num_points or default_points(source)
        # The points of a rule are no draws: they are the same for each key.
        rule_key, noise_key = jax.random.split(jax.random.key(0))
        make = partial(make_points, rule_key, model, source, num_points)
        simulated = simulate_variance(noise_key, real)
        found = NormalSum(model, real, (make(1), make(REFINEMENT)), simulated, source, num_points)
        if not self.held:
            return found
        from dpjax.clt.held import hold_covariance

        return hold_covariance(found)


@names_arguments
def normal_sum(num_points: int | None = None, hold_covariance: bool = False) -> ByNormalSum:
    """Take the sum of the records to be Normal in place of imputing them: approximate, at a cost free of n.

    For ``dpjax.sample(..., likelihood=dpjax.normal_sum())``, which is what `dpjax.sample_clt` does.

    Parameters
    ----------
    num_points
        Points of the quadrature by which moments are computed; see `dpjax.sample_clt`.
    hold_covariance
        Whether the covariance of the sum is that of the mode throughout, for `dpjax.models.log_linear` with hundreds
        of released cells. ``posterior.info["held_share"]`` has the share of draws that would be effective if they were
        weighted for that.

    Raises
    ------
    TypeError, ValueError
        If that is no number of points.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.normal_sum().num_points is None
    True
    """
    if num_points is not None:
        check_count("num_points", num_points, "Pass a whole number of at least 8.", least=8)
    check_flag("hold_covariance", hold_covariance)
    return ByNormalSum(num_points=num_points, held=hold_covariance)
