"""Noisy numbers that are known up to a multiple of a modulus, as secure aggregation releases them, or angles."""

from dataclasses import dataclass, field
from math import log
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, check_positive_number, fail, is_traced, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import AddedNoise
from dpjax.mechanisms.base import Mechanism, as_floating, convert_mechanisms
from dpjax.mechanisms.largest_density import finite
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.promises import Promise, ProtectedSums

__all__ = ["Modulo"]

NEGLIGIBLE = -40.0
"""Logarithm of the probability of noise that is left out."""

MAX_WRAPS = 4_096
"""Largest number of multiples of the modulus over which noise is spread on either side."""


@frozen_pytree
@dataclass(frozen=True)
class Modulo(Mechanism):
    """Releases (sum + noise) mod p in each coordinate: one of 0, ..., p - 1 if noise is whole, else a number in [0, p).

    Its density is the sum of those of all noise that leads there, p apart. With real noise it is a wrapped
    distribution, as of the angle of a direction.

    Parameters
    ----------
    mechanism
        The noise: `dpjax.DiscreteLaplace`, `dpjax.DiscreteGaussian`, `dpjax.Laplace`, `dpjax.Gaussian`, a
        `dpjax.mechanisms.SumOf` them, or other additive noise whose tails are known.
    modulus
        The modulus p. With integer noise a whole number, at least 2 and not above those that floats hold. With real
        noise any positive number, such as 360 for degrees.

    Raises
    ------
    TypeError, ValueError
        If the mechanism is another, its scale is traced, or its noise is so wide against the modulus that values tell
        nothing; or the modulus is no such number.

    Notes
    -----
    If the modulus is larger, such as that of a field of 64 bits, values above p / 2 stand for negative ones: subtract
    p from them, and leave `Modulo` out. No sum or noise reaches so far.

    Given a value, sums that differ by p are as good as each other. Counts move between them where p is whole and at
    most 256, or where no two sums of n records are so far apart; other releases are refused when they are sampled.
    Single records move between them where the noise is wide against p.

    Examples
    --------
    >>> from dpjax.mechanisms.modulo import Modulo
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> residue = Modulo(dpjax.DiscreteLaplace(1.0), modulus=5)
    >>> [round(float(jnp.exp(residue.log_density(jnp.array([v]), jnp.array([12.0])))), 3) for v in (1.0, 2.0, 3.0)]
    [0.18, 0.468, 0.18]
    """

    json_name: ClassVar[str | None] = "modulo"

    mechanism: Mechanism | Any
    modulus: float = field(metadata={"static": True})
    reach: float = field(init=False, default=0, repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        convert_mechanisms(self, "mechanism")
        noise = self.mechanism
        if not (noise.tails and noise.noise and noise.inner is None and not noise.sums.known):
            remedy = "Pass such as dpjax.DiscreteLaplace, dpjax.Gaussian or a dpjax.mechanisms.SumOf."
            fail("mechanism", name_of(noise), "noise that is added, whose tails are known", remedy, error=TypeError)
        if is_traced(noise):
            remedy = "How far the noise reaches follows from its scale: build it outside jit and vmap."
            fail("mechanism", "a traced scale", "numbers", remedy, error=TypeError)
        modulus = read_whole(self.modulus) if noise.integer_noise else read_positive(self.modulus)
        object.__setattr__(self, "modulus", modulus)
        object.__setattr__(self, "reach", reach_of(noise, 1 if noise.integer_noise else modulus, MAX_WRAPS * modulus))

    def _words(self) -> str:
        """The noise, and the modulus."""
        return f"{self.mechanism.promise.words()}, then taken modulo {self.modulus:,}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the noise: a residue is processing afterwards."""
        return self.mechanism.promise.of_sums(sums)

    def _json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name: the reach follows from it."""
        return {name: value for name, value in super()._json_fields().items() if name != "reach"}

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the value is a residue."""
        remedy = "Check the modulus, and add it to negative values."
        expected = f"residues 0 to {self.modulus - 1}" if self.integer_noise else f"numbers in [0, {self.modulus:g})"
        check_array(argument, value, lambda array: (array >= 0) & (array < self.modulus), expected, remedy)

    @property
    def sums(self) -> PossibleSums:
        """Sums that differ by the modulus, an int if it is whole, are as good as each other."""
        whole = float(self.modulus).is_integer()
        return super().sums._replace(
            period=int(self.modulus) if whole else self.modulus,
            depth=self._depth,
            near=self._near_sums,
            largest=self._largest if self._added.is_unimodal else None,
        )

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """That of the noise nearest to a multiple of the modulus, and of all that is half of it away or more."""
        value = as_floating(value)
        first, last = (jnp.mod(value - end, self.modulus) for end in (finite(low), finite(high)))
        # From the first sum to the last the rest falls from `first` to `last`, unless a multiple is passed.
        passes = (high - low >= first) | (high - low >= self.modulus) | (first == 0) | (last == 0)
        nearest = jnp.where(passes, 0.0, jnp.minimum(last, self.modulus - first))
        wraps = jnp.arange(1, 2 + int(self.reach // self.modulus), dtype=value.dtype)
        further = (wraps - 0.5).reshape(-1, *[1] * value.ndim) * self.modulus
        further = jnp.ceil(further) if self.integer_noise else further
        others = jax.nn.logsumexp(self._added.log_density(further), axis=0)
        return jnp.logaddexp(self._added.log_density(nearest), others + log(2))

    @property
    def _added(self) -> AddedNoise:
        """The noise before it is taken modulo."""
        assert self.mechanism.noise is not None
        return self.mechanism.noise

    def _depth(self) -> float:
        """How deep the valley between sums p apart is: the largest log ratio of the densities of two values."""
        middle = self.modulus // 2 if self.integer_noise else self.modulus / 2
        near, far = (self.log_density_terms(jnp.asarray(value, float), jnp.zeros(())) for value in (0.0, middle))
        return float(np.max(np.asarray(near - far)))

    def _near_sums(self, value: Array) -> Array:
        """The value, or p less where it is within the reach of p: then negative noise led there."""
        last = self.modulus - 1 if self.integer_noise else self.modulus
        return jnp.where(value > last - min(self.reach, self.modulus // 2), value - self.modulus, value)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each residue [..., d] given that sum [..., d]."""
        noise = as_floating(value) - as_floating(statistic)
        rest = jnp.mod(noise, self.modulus)
        nearest = jnp.where(2 * rest > self.modulus, rest - self.modulus, rest)
        log_noise = self._added.log_density
        peak = log_noise(nearest)
        total, wraps = jnp.ones_like(peak), 1 + int(self.reach // self.modulus)

        def add(turn: Array | int, total: Array) -> Array:
            step = jnp.asarray(turn, noise.dtype) * self.modulus
            both = (log_noise(nearest + sign * step) for sign in (1, -1))
            return total + sum(jnp.exp(each - peak) for each in both)

        whole = jnp.isfinite(peak)
        total = jax.lax.fori_loop(1, wraps + 1, add, total)
        return jnp.where(whole, peak + jnp.log(jnp.where(whole, total, 1)), -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the residues [d] given the sums [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Residues [d] given the sums [d]."""
        rest = jnp.mod(self.mechanism.sample(key, statistic), self.modulus)
        return jnp.where(rest < self.modulus, rest, 0.0)  # a tiny negative number is rounded to the modulus


def read_whole(modulus: Any) -> int:
    """The modulus of whole noise, or an error."""
    most = 2 ** (jnp.finfo(jnp.result_type(float)).nmant + 1)
    remedy = "Subtract a larger modulus from values above its half, and leave Modulo out."
    number = check_count("modulus", modulus, remedy, least=2)
    if number > most:
        fail("modulus", number, f"at most {most}, up to which floats hold all whole numbers", remedy)
    return number


def read_positive(modulus: Any) -> float:
    """The modulus of real noise, or an error."""
    check_positive_number("modulus", modulus, "Pass after how much values repeat, such as 360.")
    return float(modulus)


def reach_of(noise: Any, start: float, most: float) -> float:
    """How far noise goes, but for a negligible probability; an error beyond `most`."""
    reach = start
    while float(np.max(np.asarray(noise.tails.log_survival(jnp.asarray(float(reach)))))) > NEGLIGIBLE:
        reach *= 2
        if reach > most:
            given, remedy = f"noise beyond {most:g}", "All residues are as good as equally likely: leave them out."
            fail("modulus", given, f"one of at least 1/{MAX_WRAPS:,} of the noise", remedy)
    return reach
