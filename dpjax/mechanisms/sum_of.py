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
from dpjax.mechanisms.additive import Additive, Gaussian, Laplace
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, Sums
from dpjax.numerics.noise_sums import EqualLaplaces, IntegerSum, LaplaceNormal, LaplacePair, half_width
from dpjax.numerics.tails import log_complement

__all__ = ["SumOf"]

KINDS = (Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian)

SMOOTH = 2.0
"""Scale from which on sums of discrete Gaussian noise are discrete Gaussian: their probabilities agree to 1e-16."""

MAX_TERMS = 2**15
"""Largest number of terms of the exact sum over discrete Gaussian noise."""


@frozen_pytree
@dataclass(frozen=True)
class SumOf(Additive):
    """Adds the sum of independent noise of several sources to each coordinate.

    Integer noise: any number of `dpjax.DiscreteLaplace` and `dpjax.DiscreteGaussian`, as several servers each add one.
    Real noise: any number of `dpjax.Gaussian`; one `dpjax.Laplace` beside them, or none; two Laplaces of any scales; or
    several Laplaces of one scale.

    Parameters
    ----------
    mechanisms
        The noise of each source, with scales [] or [d]; a `SumOf` among them stands for its own.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If there is none, one is of another kind, integer noise is beside real noise, or no exact density is known of
        such a sum.

    Notes
    -----
    The log-probability of integer noise is an exact convolution, to rounding in either precision and at any distance.
    That of discrete Laplace noise is by the complete homogeneous polynomials of its ratios. Discrete Gaussian noise
    beside it is added by a sum over the Gaussian. Sums of Normal variables are Normal. The density of a Laplace and a
    Normal one is that of Reed (2006, The Normal-Laplace distribution and its relatives), symmetric about zero.

    What `dpjax.describe` says is a lower bound: what the best source by itself promises, as the others are processing
    afterwards. Sources that may have colluded or failed are left out of the sum by you.

    Examples
    --------
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

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        object.__setattr__(self, "mechanisms", read_sources(self.mechanisms))
        if self.integer_noise:
            object.__setattr__(self, "mechanisms", tuple(sorted(self.mechanisms, key=is_smooth)))
            object.__setattr__(self, "widths", plan_widths(self._of(DiscreteLaplace), self._of(DiscreteGaussian)))
        else:
            check_density_known(self._of(Laplace), self._of(Gaussian))

    @property
    def integer_noise(self) -> bool:  # type: ignore[override]
        """Whether the noise of all sources is whole."""
        return all(source.integer_noise for source in self.mechanisms)

    @property
    def normal_noise(self) -> bool:
        """Whether the noise of all sources is Normal."""
        return all(source.normal_noise for source in self.mechanisms)

    @property
    def noise_variance(self) -> Array:
        """The sum of the variances."""
        return reduce(add, (jnp.asarray(source.noise_variance) for source in self.mechanisms))

    @property
    def scale(self) -> Array:
        """The standard deviation of the sum."""
        return jnp.sqrt(self.noise_variance)

    def words(self) -> str:
        """The noise of each source."""
        return "the sum of " + " and ".join(source.words() for source in self.mechanisms)

    def promise(self, sums: Sums) -> Promise:
        """That of Normal noise of the whole variance; else, at least, the best of what each source promises alone."""
        if self.normal_noise:
            return Gaussian(self.scale).promise(sums)
        promises = [source.promise(sums) for source in self.mechanisms]
        epsilons = [one.epsilon for one in promises if one.epsilon is not None]
        return Promise(min(epsilons, default=None), min(one.rho for one in promises))

    def json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name: the widths follow from it."""
        return {name: value for name, value in super().json_fields().items() if name != "widths"}

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]; ``-inf`` where integer noise is not an integer."""
        if self.normal_noise:
            return Gaussian(self.scale).log_noise(noise)
        distance = jnp.abs(noise)
        if not self.integer_noise:
            return self._distribution.log_density(distance)
        whole = jnp.floor(distance)
        return jnp.where(distance == whole, self._distribution.log_density(whole), -jnp.inf)

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        if self.normal_noise:
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
        if self.integer_noise:
            laplaces, gaussians = self._scales(DiscreteLaplace), self._scales(DiscreteGaussian)
            # The last scale is that of all smooth sources together.
            single = max(len(self.widths) - bool(laplaces), 0)
            together = (root_of_squares(gaussians[single:]),) if gaussians else ()
            return IntegerSum(laplaces, (*gaussians[:single], *together), self.widths)
        laplaces = self._scales(Laplace)
        if len(laplaces) == 1:
            return LaplaceNormal(laplaces[0], root_of_squares(self._scales(Gaussian)))
        return LaplacePair(*laplaces) if len(laplaces) == 2 else EqualLaplaces(laplaces[0], len(laplaces))

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
    if len({source.integer_noise for source in sources}) > 1:
        remedy = "Take dpjax.Laplace or dpjax.Gaussian of the same variance in place of wide integer noise."
        fail("mechanisms", "integer noise beside real noise", "either integer noise or real noise", remedy)
    return tuple(sources)


def is_smooth(source: Any) -> bool:
    """Whether sums of such discrete Gaussian noise are discrete Gaussian; false of Laplace noise."""
    if type(source) is not DiscreteGaussian:
        return False
    if is_traced(source.scale):
        remedy = "How far the exact sum goes follows from the scales: build it outside jit and vmap."
        fail("mechanisms", "a traced scale of discrete Gaussian noise", "numbers", remedy, error=TypeError)
    return bool(np.min(np.asarray(source.scale)) >= SMOOTH)


def plan_widths(laplaces: tuple[Any, ...], gaussians: tuple[Any, ...]) -> tuple[int, ...]:
    """How far the exact sum over each discrete Gaussian goes, smooth ones together; none over the last without Laplace.

    Raises
    ------
    ValueError
        If that would be too many terms.
    """
    scales = [float(np.max(np.asarray(each.scale))) for each in gaussians if not is_smooth(each)]
    smooth = [np.square(np.asarray(each.scale)) for each in gaussians if is_smooth(each)]
    scales += [float(np.sqrt(np.max(reduce(add, smooth))))] if smooth else []
    widths = tuple(half_width(scale, len(laplaces)) for scale in scales)
    widths = widths if laplaces else widths[:-1]
    if (terms := prod(2 * width + 1 for width in widths)) > MAX_TERMS:
        remedy = "Of wide noise dpjax.Gaussian and dpjax.Laplace of the same scales are close approximations."
        given = f"discrete Gaussian noise of scales {[round(scale, 3) for scale in scales]}, a sum of {terms:,} terms"
        fail("mechanisms", given, f"a sum of at most {MAX_TERMS:,} terms", remedy)
    return widths


def check_density_known(laplaces: tuple[Any, ...], gaussians: tuple[Any, ...]) -> None:
    """Raise unless the density of a sum of real noise is known."""
    if len(laplaces) > 1 and gaussians:
        remedy = "No density of such a sum is known here. Discrete noise of the same scales has one."
        given = f"{len(laplaces)} Laplaces beside Gaussian noise"
        fail("mechanisms", given, "at most one Laplace beside Gaussian noise", remedy)
    if len(laplaces) > 2 and not are_equal(laplaces):
        remedy = "No density of such a sum is known here. dpjax.DiscreteLaplace noise of the same scales has one."
        fail("mechanisms", f"{len(laplaces)} Laplaces of different scales", "one scale, or two Laplaces", remedy)


def are_equal(sources: tuple[Any, ...]) -> bool:
    """Whether all sources are known to have the same scale."""
    scales = [source.scale for source in sources]
    if is_traced(*scales):
        return all(scale is scales[0] for scale in scales)
    return all(np.array_equal(np.asarray(scale), np.asarray(scales[0])) for scale in scales)


def root_of_squares(scales: tuple[Array, ...]) -> Array:
    """The standard deviation of a sum of Normal variables."""
    return jnp.sqrt(reduce(add, map(jnp.square, scales)))
