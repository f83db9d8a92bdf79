"""Noise that is a sum of noises, as where several servers each add their own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from operator import add
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import describe, fail, is_traced, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import AddedNoise
from dpjax.mechanisms.additive import Additive, Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.largest_density import at_nearest
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums
from dpjax.numerics.laplace_sums import LaplaceNormal, UnequalLaplaces
from dpjax.numerics.mixed_sums import NormalLattice
from dpjax.numerics.noise_sums import EqualLaplaces, IntegerSum, LaplacePair, half_width
from dpjax.numerics.tails import log_complement

__all__ = ["SumOf"]

KINDS = (Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian)

SMOOTH = 2.0
"""Scale from which on sums of discrete Gaussian noise are discrete Gaussian: their probabilities agree to 1e-16."""

MAX_TERMS = 2**15
"""Largest number of terms of the exact sum over Gaussian noise."""


@frozen_pytree
@dataclass(frozen=True)
class SumOf(Additive):
    """Adds the sum of independent noise of several sources to each coordinate.

    Integer noise: any number of `dpjax.DiscreteLaplace` and `dpjax.DiscreteGaussian`, as several servers each add one.
    Real noise: any number of `dpjax.Gaussian` or of `dpjax.Laplace`, or one Laplace beside Gaussians. Integer noise
    beside real noise, as of values that were perturbed again: any integer noise beside Gaussians.

    Parameters
    ----------
    mechanisms
        The noise of each source, with scales [] or [d]; a `SumOf` among them stands for its own.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If there is none, one is of another kind, or no exact density is known of such a sum.

    Notes
    -----
    The log-probability of integer noise is an exact convolution, to rounding in either precision and at any distance.
    That of discrete Laplace noise is by the complete homogeneous polynomials of its ratios. Discrete Gaussian noise
    beside it is added by a sum over the Gaussian. Sums of Normal variables are Normal. The density of a Laplace and a
    Normal one is that of Reed (2006, The Normal-Laplace distribution and its relatives), symmetric about zero. Several
    Laplaces have the density of a difference of two phase-type variables. Integer noise beside Normal noise is added by
    a sum over the integers, in logarithms.

    What `dpjax.describe` says is a lower bound: what the best source by itself promises, as the others are processing
    afterwards. Sources that may have colluded or failed are left out of the sum by you.

    Examples
    --------
    >>> from dpjax.mechanisms.sum_of import SumOf
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> two_servers = SumOf([dpjax.DiscreteLaplace(2.0), dpjax.DiscreteLaplace(2.0)])
    >>> round(float(jnp.exp(two_servers.log_noise(jnp.array(0.0)))), 4)
    0.1298
    """

    json_name: ClassVar[str | None] = "sum_of"

    mechanisms: Sequence[Any]
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)
    widths: tuple[int, ...] = field(init=False, default=(), repr=False, metadata={"static": True})
    is_even: bool = field(init=False, default=False, repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        object.__setattr__(self, "mechanisms", read_sources(self.mechanisms))
        if any(source.integer_noise for source in self.mechanisms):
            object.__setattr__(self, "mechanisms", tuple(sorted(self.mechanisms, key=is_smooth)))
        check_known(self.mechanisms)
        object.__setattr__(self, "widths", plan_widths(*map(self._of, (Gaussian, DiscreteLaplace, DiscreteGaussian))))
        object.__setattr__(self, "is_even", are_equal(tuple(source.scale for source in self._of(Laplace))))

    @property
    def integer_noise(self) -> bool:  # type: ignore[override]
        """Whether the noise of all sources is whole."""
        return all(source.integer_noise for source in self.mechanisms)

    @property
    def noise(self) -> AddedNoise:
        """Noise of the sum of the variances; it bends by the scales of all, unless whole noise is beside real noise.

        All densities are log-concave, and so are those of sums; but with real noise beside whole noise there may be a
        peak at each whole number.
        """
        return super().noise._replace(
            variance=self._variance,
            is_normal=self._is_normal,
            is_unimodal=not self._is_mixed,
            bends=None if self._is_mixed else tuple(source.scale for source in self.mechanisms),
            smoothed=self._smoothed,
        )

    @property
    def sums(self) -> PossibleSums:
        """Whole sums are the less likely the further they are from the value, even where the density has many peaks."""
        return super().sums._replace(largest=self._largest if self._is_mixed else None)

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """The log-density at the nearest sum."""
        return at_nearest(lambda nearest: self.log_noise(value - nearest), value, low, high)

    @property
    def _is_mixed(self) -> bool:
        """Whether whole noise is beside real noise."""
        return len({source.integer_noise for source in self.mechanisms}) > 1

    @property
    def scale(self) -> Array:
        """The standard deviation of the sum."""
        return jnp.sqrt(self._variance())

    @property
    def _is_normal(self) -> bool:
        """Whether the noise of all sources is Normal."""
        return all(source.noise.is_normal for source in self.mechanisms)

    def _variance(self) -> Array:
        """The sum of the variances."""
        return reduce(add, (jnp.asarray(source.noise.variance()) for source in self.mechanisms))

    def _words(self) -> str:
        """The noise of each source."""
        return "the sum of " + " and ".join(source.promise.words() for source in self.mechanisms)

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of Normal noise of the whole variance; else, at least, the best of what each source promises alone."""
        if self._is_normal:
            return Gaussian(self.scale).promise.of_sums(sums)
        whole = sums.is_whole or self.integer_noise
        promises = [source.promise.of_sums(sums) for source in self.mechanisms if whole or not source.integer_noise]
        epsilons = [one.epsilon for one in promises if one.epsilon is not None]
        return Promise(min(epsilons, default=None), min(one.rho for one in promises))

    def _smoothed(self) -> Mechanism:
        """The sum of real noise of the same variances, as far as the density of such a sum is known."""
        if not self.integer_noise:
            return self
        real = [source.noise.smoothed() if source.integer_noise else source for source in self.mechanisms]
        if obstacle_to_sum(real):
            raise NotImplementedError(f"{name_of(self)} has no real noise of the same variance")
        return real[0] if len(real) == 1 else SumOf(real)

    def _json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name; the rest follows from it."""
        return {name: value for name, value in super()._json_fields().items() if name not in ("widths", "is_even")}

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]; ``-inf`` where integer noise is not an integer."""
        if self._is_normal:
            return Gaussian(self.scale).log_noise(noise)
        distance = jnp.abs(noise)
        if not self.integer_noise:
            return self._distribution.log_density(distance)
        whole = jnp.floor(distance)
        return jnp.where(distance == whole, self._distribution.log_density(whole), -jnp.inf)

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        if self._is_normal:
            return Gaussian(self.scale).log_cdf(noise)
        if self.integer_noise:
            return self._distribution.log_at_least(-jnp.floor(noise))
        tail = self._distribution.log_tail(jnp.abs(noise))
        return jnp.where(noise < 0, tail, log_complement(tail))

    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """The sum of a draw of each source."""
        keys = jax.random.split(key, len(self.mechanisms))
        return reduce(
            add, (each.sample_noise(one, shape, dtype) for one, each in zip(keys, self.mechanisms, strict=True))
        )

    @property
    def _distribution(self) -> Any:
        """The density and the tail of a sum that is not Normal."""
        laplaces, gaussians = self._scales(Laplace), self._scales(Gaussian)
        normal = root_of_squares(gaussians) if gaussians else jnp.zeros(())
        if self.integer_noise:
            return self._whole(self.widths)
        if laplaces:
            return sum_of_laplaces(laplaces, self.is_even) if not gaussians else LaplaceNormal(laplaces[0], normal)
        width, *widths = self.widths
        return NormalLattice(self._whole(tuple(widths)), normal, width)

    def _whole(self, widths: tuple[int, ...]) -> IntegerSum:
        """The integer noise; the last scale of its Gaussian noise is that of all smooth sources together."""
        laplaces, gaussians = self._scales(DiscreteLaplace), self._scales(DiscreteGaussian)
        single = max(len(widths) - bool(laplaces), 0)
        together = (root_of_squares(gaussians[single:]),) if gaussians else ()
        return IntegerSum(laplaces, (*gaussians[:single], *together), widths)

    def _of(self, kind: type) -> tuple[Any, ...]:
        """The sources of a kind."""
        return tuple(source for source in self.mechanisms if type(source) is kind)

    def _scales(self, kind: type) -> tuple[Array, ...]:
        """Their scales."""
        return tuple(jnp.asarray(source.scale) for source in self._of(kind))


def read_sources(mechanisms: Any) -> tuple[Any, ...]:
    """The sources of the noise, with those of sums among them, or an error unless all are of known kinds."""
    remedy = "Pass a list such as [dpjax.DiscreteLaplace(2.0), dpjax.DiscreteLaplace(2.0)], one for each source."
    if not isinstance(mechanisms, (list, tuple)) or not mechanisms:
        fail("mechanisms", describe(mechanisms), "a list of mechanisms", remedy, error=TypeError)
    sources: list[Any] = []
    for place, source in enumerate(mechanisms):
        if type(source) is SumOf:
            sources += source.mechanisms
        elif type(source) in KINDS:
            sources.append(source)
        else:
            expected = "Laplace, Gaussian, DiscreteLaplace or DiscreteGaussian noise"
            remedy = "Only of these the sum is known. What was rounded in the end is mechanisms.Rounded around the sum."
            fail(f"mechanisms[{place}]", name_of(source), expected, remedy, error=TypeError)
    shapes = {np.shape(source.scale) for source in sources} - {()}
    if len(shapes) > 1:
        fail("mechanisms", f"scales of shapes {sorted(map(list, shapes))}", "scales [] or [d]", "Give each one scale.")
    return tuple(sources)


def is_smooth(source: Any) -> bool:
    """Whether sums of such discrete Gaussian noise are discrete Gaussian; false of Laplace noise."""
    if type(source) is not DiscreteGaussian:
        return False
    if is_traced(source.scale):
        remedy = "How far the exact sum goes follows from the scales: build it outside jit and vmap."
        fail("mechanisms", "a traced scale of discrete Gaussian noise", "numbers", remedy, error=TypeError)
    return bool(np.min(np.asarray(source.scale)) >= SMOOTH)


def obstacle_to_sum(sources: Sequence[Any]) -> str:
    """In words, which noise has a sum of which no density is known; "" if there is none."""
    kinds = [type(source) for source in sources]
    laplaces, has_normal = kinds.count(Laplace), Gaussian in kinds
    if laplaces and not {DiscreteLaplace, DiscreteGaussian}.isdisjoint(kinds):
        return "integer noise beside Laplace noise"
    return f"{laplaces} Laplaces beside Gaussian noise" if laplaces > 1 and has_normal else ""


def check_known(sources: Sequence[Any]) -> None:
    """Raise unless the density of the sum is known."""
    if obstacle := obstacle_to_sum(sources):
        remedy = "Take dpjax.Laplace in place of wide integer noise, and discrete noise in place of several Laplaces."
        fail("mechanisms", obstacle, "integer noise, Laplace noise, one Laplace or integer noise beside Normal", remedy)


def plan_widths(
    gaussians: tuple[Any, ...], whole_laplaces: tuple[Any, ...], whole_gaussians: tuple[Any, ...]
) -> tuple[int, ...]:
    """How far the sum over each Gaussian goes that is summed over: first that of integer noise beside Normal noise.

    Raises
    ------
    ValueError
        If that would be too many terms.
    """
    if not (whole_laplaces or whole_gaussians):
        return ()
    first = (half_width(deviation_of(gaussians), len(whole_laplaces)) + 2,) if gaussians else ()
    widths = first + plan_whole_widths(whole_laplaces, whole_gaussians)
    if (terms := prod(2 * width + 1 for width in widths)) > MAX_TERMS:
        remedy = "Of wide noise dpjax.Gaussian and dpjax.Laplace of the same scales are close approximations."
        scales = [round(deviation_of((each,)), 3) for each in (*whole_gaussians, *gaussians)]
        given = f"Gaussian noise of scales {scales} beside other noise, a sum of {terms:,} terms"
        fail("mechanisms", given, f"a sum of at most {MAX_TERMS:,} terms", remedy)
    return widths


def plan_whole_widths(laplaces: tuple[Any, ...], gaussians: tuple[Any, ...]) -> tuple[int, ...]:
    """How far the sum over each discrete Gaussian goes, smooth ones together; not over the last without Laplace."""
    smooth = [each for each in gaussians if is_smooth(each)]
    scales = [deviation_of((each,)) for each in gaussians if not is_smooth(each)]
    scales += [deviation_of(tuple(smooth))] if smooth else []
    widths = tuple(half_width(scale, len(laplaces)) for scale in scales)
    return widths if laplaces else widths[:-1]


def deviation_of(gaussians: tuple[Any, ...]) -> float:
    """The largest scale of the sum of Gaussian noise, discrete or not."""
    for each in gaussians:
        if is_traced(each.scale):
            remedy = "How far the exact sum goes follows from the scales: build it outside jit and vmap."
            fail("mechanisms", "a traced scale of Gaussian noise", "numbers", remedy, error=TypeError)
    return float(np.sqrt(np.max(reduce(add, [np.square(np.asarray(each.scale, float)) for each in gaussians]))))


def sum_of_laplaces(scales: tuple[Array, ...], is_even: bool) -> Any:
    """The density and the tail of Laplace noise, of one scale or not."""
    if len(scales) == 2:
        return LaplacePair(*scales)
    return EqualLaplaces(scales[0], len(scales)) if is_even else UnequalLaplaces(scales)


def are_equal(scales: tuple[Any, ...]) -> bool:
    """Whether all scales, if there are any, are known to be the same."""
    if is_traced(*scales):
        return all(scale is scales[0] for scale in scales)
    return all(np.array_equal(np.asarray(scale), np.asarray(scales[0])) for scale in scales)


def root_of_squares(scales: tuple[Array, ...]) -> Array:
    """The standard deviation of a sum of Normal variables."""
    return jnp.sqrt(reduce(add, map(jnp.square, scales)))
