"""The named parameter kernels: BlackJAX's kernels on whitened vectors, with their options.

Kernels with a step size take it from the `Tuning`, to which warm-up fits it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
from blackjax.mcmc import slice as blackjax_slice
from blackjax.mcmc.hmc import HMCInfo, HMCState
from blackjax.mcmc.slice import SliceInfo, SliceState, sample_direction, stepping_out

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_count, check_hashable_function, check_positive, fail
from dpjax.base import Array, Key, SamplingAlgorithm

LogDensity = Callable[[Array], Array]
KernelBuilder = Callable[[LogDensity], SamplingAlgorithm]


@dataclass(frozen=True, kw_only=True)
class ParameterKernel:
    """A kernel for the parameters given the records; hashable, so that compiled programs are reused.

    Built by `parameter_kernel`, or implied by a name.

    Parameters
    ----------
    num_steps
        Steps of the kernel a sweep.

    Examples
    --------
    >>> from dpjax.data_augmentation.parameters.kernels import ParameterKernel
    >>> import dpjax
    >>> kernel = dpjax.data_augmentation.parameter_kernel("elliptical_slice", num_steps=2)
    >>> isinstance(kernel, ParameterKernel), kernel.num_steps
    (True, 2)
    """

    num_steps: int = 1

    def __post_init__(self) -> None:
        """Raise unless the numbers are usable."""
        for field in fields(self):
            check_option(field.name, getattr(self, field.name))

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """The algorithm that leaves ``exp(log_density)`` of whitened vectors [size] invariant."""
        raise NotImplementedError

    def start(self, rng_key: Key, algorithm: SamplingAlgorithm, position: Array) -> tuple[Key, Any]:
        """The key of the steps, and the algorithm's state at a position; named kernels draw no part of it."""
        return rng_key, algorithm.init(position)


def check_option(name: str, value: Any) -> None:
    """Raise unless the value of an option is usable."""
    if name == "target_acceptance":
        check_array(name, value, lambda rate: (rate > 0) & (rate < 1), "a number in (0, 1)", "Pass such as 0.8.")
    elif name == "width":
        check_positive(name, value)
    elif name != "builder":
        check_count(name, value)


@dataclass(frozen=True, kw_only=True)
class SteppedKernel(ParameterKernel):
    """A kernel with a step size, which warm-up fits.

    Parameters
    ----------
    target_acceptance
        The acceptance rate to which the step size is fitted.
    """

    target_acceptance: float = 0.8


@dataclass(frozen=True, kw_only=True)
class NUTS(SteppedKernel):
    """The no-U-turn sampler (Hoffman and Gelman 2014); a trajectory has up to 2^`max_doublings` gradients."""

    max_doublings: int = 10

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        return blackjax.nuts(log_density, step_size, jnp.ones(size), max_num_doublings=self.max_doublings)


@dataclass(frozen=True, kw_only=True)
class HMC(SteppedKernel):
    """Hamiltonian Monte Carlo with trajectories of `num_leapfrogs` gradients.

    Each trajectory takes a step between half and the whole step size. Trajectories of one length come back to where
    they began, or nearly so, on some targets (Neal 2011, section 5.4.2.2).
    """

    num_leapfrogs: int = 4

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        kernel = blackjax.hmc.build_kernel()

        def init(position: Array, rng_key: Key | None = None) -> HMCState:
            del rng_key
            return blackjax.hmc.init(position, log_density)

        def step(rng_key: Key, state: HMCState) -> tuple[HMCState, HMCInfo]:
            share_key, move_key = jax.random.split(rng_key)
            part = step_size * jax.random.uniform(share_key, dtype=step_size.dtype, minval=0.5, maxval=1.0)
            return kernel(move_key, state, log_density, part, jnp.ones(size), self.num_leapfrogs)

        return SamplingAlgorithm(init, step)


@dataclass(frozen=True, kw_only=True)
class MALA(SteppedKernel):
    """The Metropolis-adjusted Langevin algorithm; the target is the optimum in many dimensions."""

    target_acceptance: float = 0.574

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        return blackjax.mala(log_density, step_size)


@dataclass(frozen=True, kw_only=True)
class NormalRandomWalk(SteppedKernel):
    """Random-walk Metropolis; the optimal target falls from 0.44 in one dimension to 0.234 in many."""

    target_acceptance: float = 0.3

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        return blackjax.normal_random_walk(log_density, jnp.full(size, step_size))


def along_direction(rng_key: Key, position: Array, log_density: LogDensity) -> Callable:
    """The candidates of positive density along a random direction."""
    direction = sample_direction(rng_key, position)
    return within_support(lambda place: position + place * direction, log_density)


def along_axis(rng_key: Key, position: Array, log_density: LogDensity, axis: Array) -> Callable:
    """The candidates of positive density along a coordinate."""
    del rng_key  # there is nothing to draw
    return within_support(lambda place: position.at[axis].add(place), log_density)


@dataclass(frozen=True, kw_only=True)
class SliceSampling(ParameterKernel):
    """Slice sampling along one random direction a step (hit and run)."""

    width: float = 2.0

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        return blackjax.slice_sampling(
            log_density, proposal_generator=along_direction, width=self.width, interval=stepping_out
        )


@dataclass(frozen=True, kw_only=True)
class CoordinateSlice(ParameterKernel):
    """Slice sampling of every coordinate in turn."""

    width: float = 2.0

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        return blackjax.coordinate_slice(
            log_density, axis_proposal=along_axis, initial_widths=self.width, interval=stepping_out
        )


@dataclass(frozen=True, kw_only=True)
class EllipticalSlice(ParameterKernel):
    """Elliptical slice moves around the whitening's centre, for priors of any kind."""

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        return elliptical_slice(log_density)


@dataclass(frozen=True, kw_only=True)
class OwnKernel(ParameterKernel):
    """A kernel of the user's own: ``builder(log_density)`` is a BlackJAX algorithm on whitened vectors [k]."""

    builder: KernelBuilder

    def build(self, log_density: LogDensity, size: int, step_size: Array) -> SamplingAlgorithm:
        """See `ParameterKernel`."""
        return self.builder(log_density)

    def start(self, rng_key: Key, algorithm: SamplingAlgorithm, position: Array) -> tuple[Key, Any]:
        """As `ParameterKernel`, with what the algorithm draws for its state, such as a momentum."""
        state_key, steps_key = jax.random.split(rng_key)
        takes_key = len(signature(algorithm.init).parameters) > 1
        return steps_key, algorithm.init(position, state_key) if takes_key else algorithm.init(position)


KERNELS: dict[str, type[ParameterKernel]] = {
    "coordinate_slice": CoordinateSlice,
    "elliptical_slice": EllipticalSlice,
    "hmc": HMC,
    "mala": MALA,
    "normal_random_walk": NormalRandomWalk,
    "nuts": NUTS,
    "slice_sampling": SliceSampling,
}


@names_arguments
def parameter_kernel(kernel: str | KernelBuilder, num_steps: int = 1, **options: Any) -> ParameterKernel:
    """A kernel that leaves p(parameters | records) invariant, for ``sample`` and ``gibbs``: any of BlackJAX's.

    It moves the parameters on their unconstrained scale, as a vector [k] that warm-up whitens.

    Parameters
    ----------
    kernel
        ``"nuts"``, ``"hmc"``, ``"mala"``, ``"normal_random_walk"``, ``"slice_sampling"``, ``"coordinate_slice"`` or
        ``"elliptical_slice"``; or a function ``log_density -> SamplingAlgorithm``, which chooses its own step size.
        What its state has beside the position, such as a momentum, is drawn anew in each sweep, and kept from step to
        step. A kernel without an accept-reject decision, such as ``blackjax.mclmc``, adds an error of its own.
    num_steps
        Steps a sweep, at least 1.
    **options
        ``target_acceptance`` of the four kernels with a step size; ``max_doublings`` of NUTS; ``num_leapfrogs`` of HMC;
        ``width`` of the brackets of ``"slice_sampling"`` and ``"coordinate_slice"``, in units of the whitening.

    Raises
    ------
    TypeError, ValueError
        If there is no such kernel or option, or a number is unusable.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.data_augmentation.parameter_kernel("hmc", num_steps=2, num_leapfrogs=5).num_steps
    2
    """
    if isinstance(kernel, str):
        family = KERNELS.get(kernel)
        if family is None:
            fail("parameter_kernel", repr(kernel), f"one of {sorted(KERNELS)}", "Or pass a function; see the guide.")
        check_names(kernel, options, {field.name for field in fields(family)})
        return family(num_steps=num_steps, **options)
    expected = f"a hashable function or one of {sorted(KERNELS)}"
    if isinstance(kernel, type):
        remedy = "Pass an instance or a function of your own, or a name."
        fail("parameter_kernel", f"the class {kernel.__name__}", expected, remedy, error=TypeError)
    check_hashable_function("parameter_kernel", kernel, expected)
    check_names("a function", options, set())
    return OwnKernel(num_steps=num_steps, builder=kernel)


def check_names(kernel: str, options: dict[str, Any], known: set[str]) -> None:
    """Raise if an option is not one of the kernel's."""
    if unknown := sorted(set(options) - known):
        expected = f"options of {kernel}: {sorted(known - {'num_steps'}) or 'none'}"
        fail("parameter_kernel", f"options {unknown}", expected, "Leave them out.", error=TypeError)


def elliptical_slice(log_density: Callable[[Array], Array]) -> SamplingAlgorithm:
    """Elliptical slice moves of a whitened vector [k]; they leave ``exp(log_density)`` invariant.

    The ellipse is that of a standard normal reference, whose density is divided out of the target (Nishihara, Murray
    and Adams 2014). So the target need not have a Gaussian prior.
    """

    def log_ratio(vector: Array) -> Array:
        return log_density(vector) + 0.5 * jnp.sum(vector * vector)

    kernel = blackjax_slice.build_kernel(interval=whole_turn)

    def init(position: Array, rng_key: Key | None = None) -> SliceState:
        del rng_key
        return blackjax_slice.init(position, log_ratio)

    def step(rng_key: Key, state: SliceState) -> tuple[SliceState, SliceInfo]:
        return kernel(rng_key, state, log_ratio, ellipse, 2 * jnp.pi)

    return SamplingAlgorithm(init, step)


def ellipse(rng_key: Key, position: Array, log_density: Callable[[Array], Array]) -> Callable:
    """The map from an angle to the candidate on the ellipse through the position and a standard normal draw."""
    momentum = jax.random.normal(rng_key, position.shape)

    return within_support(lambda angle: position * jnp.cos(angle) + momentum * jnp.sin(angle), log_density)


def within_support(point: Callable[[Array], Array], log_density: Callable[[Array], Array]) -> Callable:
    """The map from a place on a line or ellipse to the candidate there, valid if its density is positive and finite.

    Without this condition every candidate would be accepted at a slice level of log-density −∞, which a state of zero
    density or a uniform draw of 0 gives.
    """

    def candidate(place: Array) -> tuple[SliceState, Array]:
        position = point(place)
        density = log_density(position)
        return SliceState(position, density), jnp.isfinite(density)

    return candidate


def whole_turn(rng_key: Key, in_slice: Callable, width: float, max_expansions: int) -> tuple:
    """The first bracket: one turn [−w U, w − w U] around the current angle 0, with U uniform in (0, 1)."""
    del in_slice, max_expansions  # a whole turn is the whole ellipse: there is nothing to step out to
    left = -width * jax.random.uniform(rng_key)
    return left, left + width, jnp.array(0), lambda angle: jnp.array(True)
