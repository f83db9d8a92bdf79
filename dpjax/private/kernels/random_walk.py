"""DP-penalty: a random walk with a noisy clipped acceptance test."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_flag, check_positive, describe, fail
from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.arguments import check_bound, check_noise, check_numbers, check_target, check_tau
from dpjax.private.kernels.base import KernelInfo, NotPrivate, PrivateKernel, build_answer, make_kernel, ravel
from dpjax.private.kernels.decision import AcceptanceTest, Test, choose_test
from dpjax.private.kernels.penalty import Answer, PenaltyTest, ProposedMove, exact
from dpjax.private.noise import Noise
from dpjax.private.targets.target import Target

__all__ = ["WalkInnovations", "WalkState", "dp_penalty", "rwmh", "walk_core"]

Components = Literal["all", "one"]


class WalkState(NamedTuple):
    """The parameters, unconstrained, and the direction ±1 [d] in which a guided walk goes on."""

    position: Any
    direction: Array


class WalkInnovations(NamedTuple):
    """The randomness of one iteration that needs no protection.

    Attributes
    ----------
    normals
        Standard Normal numbers [d].
    component
        The coordinate that moves [], if one does.
    log_uniform
        The logarithm [] of a uniform number.
    """

    normals: Array
    component: Array
    log_uniform: Array


class WalkSettings(NamedTuple):
    """The numbers of a walk, and its acceptance test."""

    scale: Array
    components: Components
    guided: bool
    test: AcceptanceTest


@names_arguments
def dp_penalty(
    target: Target,
    noise: Noise,
    *,
    proposal_scale: Any,
    ratio_bound: float,
    tau: float,
    components: Components = "all",
    guided: bool = False,
    test: Test = "penalty",
) -> PrivateKernel:
    """Leaves the posterior invariant if no log-likelihood ratio is clipped: Yıldırım and Ermis (2019).

    Each iteration asks for one noisy log-likelihood ratio.

    Parameters
    ----------
    target
        See `target`, `model_target`.
    noise
        The source of noise: there is no default.
    proposal_scale
        The standard deviation of a move: a number, or one for each coordinate [d].
    ratio_bound
        b: each record's log-likelihood ratio is clipped to ±b‖θ − θ′‖.
    tau
        The noise of a ratio has standard deviation 2 τ b‖θ − θ′‖.
    components
        Whether all coordinates move at once, or one that is chosen at random.
    guided
        Whether each coordinate goes on in its direction until a proposal is rejected (Gustafson 1998).
    test
        ``"penalty"`` releases the noisy ratio. ``"decision"`` releases the decision alone: it accepts more often, for
        the same charge.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> kernel = dpjax.private.dp_penalty(target, private.noise.jax, proposal_scale=0.5, ratio_bound=2.0, tau=5.0)
    >>> [query.name for query in kernel.queries]
    ['log-likelihood ratio']
    """
    check_target("target", target)
    check_noise(noise)
    chosen = choose_test(test, target, check_bound("ratio_bound", ratio_bound), tau=check_tau("tau", tau))
    settings = WalkSettings(
        check_scale(proposal_scale, target), check_components(components), check_guided(guided), chosen
    )
    return make_kernel(target, partial(build, settings, partial(build_answer, noise)), (chosen.query(noise),))


@names_arguments
def rwmh(
    target: Target,
    *,
    proposal_scale: Any,
    ratio_bound: float = inf,
    components: Components = "all",
    guided: bool = False,
) -> PrivateKernel:
    """Leaves the posterior invariant, **without any privacy**: `dp_penalty` with no noise and no clipping.

    A bound is for the study of clipping: clipped ratios change the invariant distribution.

    Parameters
    ----------
    target
        As in `dp_penalty`.
    proposal_scale
        As in `dp_penalty`.
    ratio_bound
        As in `dp_penalty`; without one nothing is clipped.
    components
        As in `dp_penalty`.
    guided
        As in `dp_penalty`.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> dpjax.private.rwmh(target, proposal_scale=0.5).queries
    ()
    """
    check_target("target", target)
    bound = check_bound("ratio_bound", ratio_bound, largest=inf)
    settings = WalkSettings(
        check_scale(proposal_scale, target), check_components(components), check_guided(guided), PenaltyTest(bound, 0.0)
    )
    return make_kernel(target, partial(build, settings, lambda key: exact), ())


def build(settings: WalkSettings, answer_with: Callable[[Key], Answer], target: Target) -> SamplingAlgorithm:
    """The algorithm: each step draws the innovations of `walk_core`."""

    def init(position: Any, rng_key: Key | None = None) -> WalkState:
        del rng_key
        return WalkState(position, jnp.ones_like(ravel(position)))

    def step(rng_key: Key, state: WalkState) -> tuple[WalkState, KernelInfo]:
        normal_key, component_key, uniform_key, noise_key = jax.random.split(rng_key, 4)
        vector = ravel(state.position)
        innovations = WalkInnovations(
            jax.random.normal(normal_key, vector.shape, vector.dtype),
            jax.random.randint(component_key, (), 0, vector.size),
            jnp.log(jax.random.uniform(uniform_key, (), vector.dtype)),
        )
        vector, direction, info = walk_core(
            target, settings, answer_with(noise_key), vector, state.direction, innovations
        )
        return WalkState(target.unravel(vector), direction), info

    return SamplingAlgorithm(init, step)


def walk_core(
    target: Target,
    settings: WalkSettings,
    answer: Answer,
    vector: Array,
    direction: Array,
    innovations: WalkInnovations,
) -> tuple[Array, Array, KernelInfo]:
    """One iteration of the walk as a function of its innovations and of the answer to its one query.

    A guided walk proposes (θ + ν|z|, −ν) and then turns ν round: an accepted proposal goes on, a rejected one turns.
    """
    moves = settings.scale.astype(vector.dtype) * innovations.normals
    moved = jnp.ones(vector.size, bool)
    if settings.components == "one":
        moved = jnp.arange(vector.size) == innovations.component
    if settings.guided:
        moves = direction * jnp.abs(moves)
    proposal = vector + jnp.where(moved, moves, 0.0)
    query = jnp.zeros((), jnp.int32)
    accepted, clipped = settings.test.decide(
        target, partial(answer, query), ProposedMove(vector, proposal), innovations.log_uniform
    )
    if settings.guided:
        direction = jnp.where(moved & ~accepted, -direction, direction)
    nothing = jnp.asarray(jnp.nan, vector.dtype)
    return jnp.where(accepted, proposal, vector), direction, KernelInfo(accepted, NotPrivate(nothing, clipped))


def check_scale(scale: Any, target: Target) -> Array:
    """The standard deviations of a move, a number or one for each coordinate."""
    check_numbers("proposal_scale", scale)
    if np.shape(scale) not in ((), (target.dimension,)):
        remedy = "Pass one scale for all coordinates, or one for each."
        fail("proposal_scale", f"shape {np.shape(scale)}", f"a number or [{target.dimension}]", remedy)
    check_positive("proposal_scale", scale)
    return jnp.asarray(scale, float)


def check_components(components: Any) -> Components:
    """Which coordinates move."""
    if not isinstance(components, str) or components not in ("all", "one"):
        remedy = "Pass 'all' to move all coordinates at once."
        return fail("components", describe(components), "'all' or 'one'", remedy)
    return "all" if components == "all" else "one"


def check_guided(guided: Any) -> bool:
    """Whether the walk is guided, or an error unless it is a bool."""
    check_flag("guided", guided)
    return bool(guided)
