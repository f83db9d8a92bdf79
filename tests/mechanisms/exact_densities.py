"""Densities and tails of additive noise in 50 digits, from 1e-6 to 1e6 scales and at ratios of scales from 1e-6 to 1e6.

``python -m tests.mechanisms.exact_densities`` writes them down in `tests/references/densities.json`. Scales and
distances are floats of few bits, so that they are the same in single and in double precision. The laws are written
without a look at the library: as mixtures by partial fractions, as residues, and as plain sums over whole numbers.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

from dpjax.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Staircase,
    SumOf,
    Tulap,
)

mp.dps = 200
"""Of which partial fractions of like scales and differences of tails leave 50."""

PATH = Path(__file__).parents[1] / "references" / "densities.json"
NEGLIGIBLE = mpf(10) ** -55
MOST_TERMS = 20_000

Law = tuple[Any, Any]
"""The density and P(noise >= x) at a distance x >= 0."""


def normal(sigma: Any, x: Any) -> Law:
    """Normal noise."""
    return mp.npdf(x, 0, sigma), mp.erfc(x / sigma / mp.sqrt(2)) / 2


def laplace_beside_normal(b: Any, sigma: Any, x: Any) -> Law:
    """Laplace noise alone (σ = 0), or beside Normal noise."""
    if not sigma:
        return mp.exp(-abs(x) / b) / 2 / b, mp.exp(-x / b) / 2 if x >= 0 else 1 - mp.exp(x / b) / 2
    sides = [
        mp.exp(sigma**2 / b**2 / 2 - sign * x / b) * mp.erfc((sigma / b - sign * x / sigma) / mp.sqrt(2)) / 4
        for sign in (1, -1)
    ]
    return sum(sides) / b, mp.erfc(x / sigma / mp.sqrt(2)) / 2 + sides[0] - sides[1]


def laplaces_beside_normal(laplaces: Sequence[Any], sigma: Any, x: Any) -> Law:
    """Several Laplaces by partial fractions; equal scales are taken to differ by 1e-35 of them."""
    if not laplaces:
        return normal(sigma, x)
    b = [scale * (1 + place * mpf(10) ** -35) for place, scale in enumerate(laplaces)]
    weights = [mp.fprod(one**2 / (one**2 - other**2) for other in b if other != one) for one in b]
    parts = [laplace_beside_normal(one, sigma, x) for one in b]
    return tuple(mp.fsum(w * part[k] for w, part in zip(weights, parts, strict=True)) for k in (0, 1))


def equal_laplaces(number: int, b: Any, x: Any) -> Law:
    """The sum of many Laplaces of one scale: a Bessel function of half-integer order, and its integral."""
    y, order = x / b, number - mpf(1) / 2
    top = mp.gamma(order) * mpf(2) ** (order - 1) if not y else y**order * mp.besselk(order, y)
    powers = [
        mp.binomial(2 * number - 2 - p, number - 1) / mp.factorial(p) / mpf(2) ** (2 * number - 1 - p)
        for p in range(number)
    ]
    tail = mp.fsum(c * mp.gammainc(p + 1, y) for p, c in enumerate(powers))
    return top / mp.sqrt(mp.pi) / mp.gamma(number) / mpf(2) ** order / b, tail


def whole_laplaces(scales: Sequence[Any], k: Any) -> Law:
    """The sum of discrete Laplace noise, by the residues of its generating function."""
    b = [scale * (1 + place * mpf(10) ** -35) for place, scale in enumerate(scales)]
    q = [mp.exp(-1 / scale) for scale in b]
    weights = [
        mp.fprod((1 - other) ** 2 for other in q)
        / (1 - one**2)
        / mp.fprod((1 - other / one) * (1 - other * one) for other in q if other != one)
        for one in q
    ]
    pairs = list(zip(weights, q, strict=True))
    return mp.fsum(w * one ** abs(k) for w, one in pairs), mp.fsum(
        w * one**k / (1 - one) if k > 0 else w / (1 - one) * (1 + one - one ** (1 - k)) for w, one in pairs
    )


def theta(sigma: Any) -> Any:
    """The sum of exp(-k² / 2σ²) over all integers, by the faster of two series."""
    width = sigma * mp.sqrt(2 * mp.pi)
    wide = max(width, 1 / width)
    total = 1 + 2 * mp.fsum(mp.exp(-mp.pi * wide**2 * k**2) for k in range(1, 12))
    return max(width, mpf(1)) * total


def theta_from(least: Any, sigma: Any) -> Any:
    """The sum of exp(-k² / 2σ²) from a whole number >= 0 on: plain, or by Euler and Maclaurin if that is long."""
    reach = -mp.log(NEGLIGIBLE) * sigma**2
    terms = min(mp.sqrt(2 * reach), reach / max(least, 1)) + 2
    if terms < MOST_TERMS:
        return mp.fsum(mp.exp(-((least + k) ** 2) / 2 / sigma**2) for k in range(int(terms)))
    place, first = least / sigma, mp.exp(-((least / sigma) ** 2) / 2)
    hermite = [mpf(1), place]
    for n in range(1, 40):
        hermite.append(place * hermite[n] - n * hermite[n - 1])
    corrections = (
        mp.bernoulli(2 * j) / mp.factorial(2 * j) * hermite[2 * j - 1] * sigma ** (1 - 2 * j) for j in range(1, 16)
    )
    return sigma * mp.sqrt(mp.pi / 2) * mp.erfc(place / mp.sqrt(2)) + first * (mpf(1) / 2 + mp.fsum(corrections))


def whole_gaussian(sigma: Any, k: Any) -> Law:
    """Discrete Gaussian noise."""
    total = theta(sigma)
    upper = theta_from(k, sigma) if k > 0 else total - theta_from(1 - k, sigma)
    return mp.exp(-(k**2) / 2 / sigma**2) / total, upper / total


def summed_over_whole(sigma: Any, mode: Any, rest: Callable[[Any], Law], x: Any) -> Law:
    """Discrete Gaussian noise beside other noise, summed over the first one near its mode."""
    reach, centre = int(18 * sigma) + 20, int(mp.nint(mode))
    weights = {k: mp.exp(-(mpf(k) ** 2) / 2 / sigma**2) for k in range(centre - reach, centre + reach + 1)}
    parts = [(weight, rest(x - k)) for k, weight in weights.items()]
    total = theta(sigma)
    return tuple(mp.fsum(weight * part[side] for weight, part in parts) / total for side in (0, 1))


def of_laplaces_and_gaussian(b: Any, sigma: Any, k: Any) -> Law:
    """One discrete Laplace and one discrete Gaussian."""
    return summed_over_whole(sigma, min(k, sigma**2 / b), partial(whole_laplaces, [b]), k)


def of_whole_gaussian_and_normal(s: Any, sigma: Any, x: Any) -> Law:
    """Discrete Gaussian noise beside Normal noise."""
    return summed_over_whole(s, x * s**2 / (s**2 + sigma**2), lambda rest: either_side(partial(normal, sigma), rest), x)


def either_side(law: Callable[[Any], Law], x: Any) -> Law:
    """The density and P(noise >= x) for an x of either sign."""
    density, tail = law(abs(x))
    return density, tail if x >= 0 else 1 - tail


def of_whole_laplace_and_normal(b: Any, sigma: Any, x: Any) -> Law:
    """Discrete Laplace noise beside Normal noise, summed over the whole noise near its mode."""
    centre, reach = int(mp.nint(max(x - sigma**2 / b, 0))), int(18 * sigma) + 12
    places = range(centre - reach, centre + reach + 1)
    q = mp.exp(-1 / b)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in places}
    density = mp.fsum(law[k] * normal(sigma, x - k)[0] for k in places)
    # P(noise >= x) = Σ_k P(whole >= k) P(x - k <= normal < x - k + 1), which no far place disturbs.
    upper = {k: q**k / (1 + q) if k > 0 else 1 - q ** (1 - k) / (1 + q) for k in places}
    tails = [either_side(partial(normal, sigma), x - k)[1] for k in (places[0] - 1, *places)]
    tail = mp.fsum(upper[k] * (after - before) for k, (before, after) in zip(places, pairwise(tails), strict=True))
    return density, tail


def staircase(epsilon: Any, share: Any, x: Any) -> Law:
    """The staircase of sensitivity 1."""
    fall, k = mp.exp(-epsilon), int(mp.floor(x))
    height = (1 - fall) / 2 / (share + fall * (1 - share))
    inside = x - k
    first = max(share - inside, 0) + fall * (1 - max(share, inside))
    return height * fall ** (k + (inside >= share)), fall**k * (fall / 2 + height * first)


def tulap(scale: Any, x: Any) -> Law:
    """Discrete Laplace noise and a uniform number from -1/2 to 1/2."""
    k = int(mp.nint(x))
    density, upper = whole_laplaces([scale], k)
    return density, upper - density + density * (k + mpf(1) / 2 - x)


class Kind(NamedTuple):
    """One kind of noise.

    Attributes
    ----------
    build
        The mechanism of arrays [n] of its numbers.
    law
        The density and the tail at the numbers and a distance.
    numbers
        Its numbers.
    is_whole
        Whether distances are whole.
    """

    build: Callable[..., Any]
    law: Callable[..., Law]
    numbers: Sequence[tuple[float, ...]]
    is_whole: bool = False


TINY, HUGE = 2.0**-20, 2.0**20
EXPONENTS = (-20, -13, -7, -3, -1, 0, 1, 3, 7, 13, 20)
RATIOS = tuple(2.0**k for k in EXPONENTS)
PAIRS = [(max(1.0, 1 / ratio), max(1.0, ratio)) for ratio in RATIOS]
LIKE = 1.0625
"""A ratio of scales of which partial fractions leave enough in single precision."""

KINDS: dict[str, Kind] = {
    "Laplace": Kind(lambda b: Laplace(b), lambda b, x: laplace_beside_normal(b, 0, x), [(1.0,), (TINY,)]),
    "Gaussian": Kind(lambda s: Gaussian(s), normal, [(1.0,), (HUGE,)]),
    "Staircase": Kind(
        lambda epsilon, share: Staircase(epsilon, 1.0, share),
        staircase,
        [(TINY, 0.375), (0.125, 0.375), (2.0, 0.375), (128.0, 0.375), (128.0, 0.0), (2.0, 1.0)],
    ),
    "Tulap": Kind(lambda b: Tulap(b), tulap, [(2.0**-10,), (0.5,), (8.0,), (HUGE,)]),
    "DiscreteLaplace": Kind(
        lambda b: DiscreteLaplace(b),
        lambda b, k: whole_laplaces([b], k),
        [(TINY,), (0.5,), (8.0,), (2.0**10,)],
        is_whole=True,
    ),
    "DiscreteGaussian": Kind(
        lambda s: DiscreteGaussian(s),
        whole_gaussian,
        [(TINY,), (0.25,), (0.5,), (1.0,), (8.0,), (2.0**10,)],
        is_whole=True,
    ),
    "Laplace and Gaussian": Kind(lambda b, s: SumOf([Laplace(b), Gaussian(s)]), laplace_beside_normal, PAIRS),
    "two Laplaces": Kind(
        lambda b, c: SumOf([Laplace(b), Laplace(c)]),
        lambda b, c, x: laplaces_beside_normal([b, c], 0, x),
        [*PAIRS[5:], (1.0, 1 + TINY)],
    ),
    "five equal Laplaces": Kind(
        lambda b: SumOf([Laplace(b)] * 5), lambda b, x: laplaces_beside_normal([b] * 5, 0, x), [(1.0,)]
    ),
    "forty equal Laplaces": Kind(lambda b: SumOf([Laplace(b)] * 40), partial(equal_laplaces, 40), [(1.0,)]),
    "three Laplaces": Kind(
        lambda a, b, c: SumOf([Laplace(a), Laplace(b), Laplace(c)]),
        lambda a, b, c, x: laplaces_beside_normal([a, b, c], 0, x),
        [(1.0, 1.0, 1.0), (LIKE, 1.0, LIKE), (8.0, 1.0, 64.0), (TINY, 1.0, 1.0), (HUGE, 1.0, 2.0**10)],
    ),
    "two discrete Laplaces": Kind(
        lambda b, c: SumOf([DiscreteLaplace(b), DiscreteLaplace(c)]),
        lambda b, c, k: whole_laplaces([b, c], k),
        [(TINY, 1.0), (0.5, 0.5), (1.0, 8.0), (8.0, 8 * LIKE), (1.0, 2.0**10), (2.0**-10, 2.0**10)],
        is_whole=True,
    ),
    "three discrete Laplaces": Kind(
        lambda a, b, c: SumOf([DiscreteLaplace(a), DiscreteLaplace(b), DiscreteLaplace(c)]),
        lambda a, b, c, k: whole_laplaces([a, b, c], k),
        [(1.0, 1.0, 1.0), (2.0**-10, 1.0, 2.0**10), (8.0, 8 * LIKE, 64.0)],
        is_whole=True,
    ),
    "discrete Laplace and Gaussian": Kind(
        lambda b, s: SumOf([DiscreteLaplace(b), DiscreteGaussian(s)]),
        of_laplaces_and_gaussian,
        [*product((2.0**-10, 0.5, 2.0, 2.0**10), (2.0**-10, 0.5, 4.0))],
        is_whole=True,
    ),
    "discrete Laplace beside Gaussian": Kind(
        lambda b, s: SumOf([DiscreteLaplace(b), Gaussian(s)]),
        of_whole_laplace_and_normal,
        [*product((2.0**-10, 0.5, HUGE), (TINY, 2.0**-4, 4.0)), (4.0, 0.5)],
    ),
    "discrete Gaussian beside Gaussian": Kind(
        lambda s, t: SumOf([DiscreteGaussian(s), Gaussian(t)]),
        of_whole_gaussian_and_normal,
        [*product((2.0**-10, 4.0), (TINY, 2.0**-4, 4.0)), (0.5, 0.5)],
    ),
}


def distances(scales: Sequence[float], is_whole: bool) -> list[float]:
    """Distances from 2^-20 of the least to 2^20 of the greatest scale, and about where tails change their form."""
    least, most = min(scales), max(scales)
    found = {0.0, least * 2.0**-20 * 1.375, least * 1.375, most * 2.0**20 * 1.375, most * 2.0**10 * 1.25}
    found |= {most * place for place in (2.0**-6 * 1.75, 0.3125, 1.375, 3.5, 11.0, 29.0)}
    found |= {(least * most) ** 0.5 * 1.375, 6 * least, most * most / least * 0.96875, most * most / least * 1.25}
    if is_whole:
        whole = {float(round(x)) for x in found | {1.0, 2.0, 3.0}}
        return sorted(x for x in whole if x < 2.0**31 and float(np.float32(x)) == x)
    return sorted(float(np.float32(x)) for x in found if x <= most * 2.0**21)


def scales_of(name: str, numbers: tuple[float, ...]) -> tuple[float, ...]:
    """The lengths of a kind of noise: its scales, and 1 where there is a lattice."""
    if name == "Staircase":
        return 1 / numbers[0], 1.0
    return (*numbers, 1.0) if name == "Tulap" or "discrete" in name else numbers


def uneven(name: str, numbers: tuple[float, ...]) -> tuple[float, ...]:
    """The numbers, of which none is left a power of 2, by which division is exact."""
    if name == "Staircase":
        return 1.3125 * numbers[0], numbers[1]
    own = 1.1875 if name.endswith("Gaussian") else 1.3125
    return (*(1.3125 * one for one in numbers[:-1]), own * numbers[-1])


def rows(name: str) -> Iterator[list[float]]:
    """The numbers, a distance, and the logarithms of the density and of P(noise >= distance)."""
    kind = KINDS[name]
    for numbers in (uneven(name, numbers) for numbers in kind.numbers):
        for x in distances(scales_of(name, numbers), kind.is_whole):
            law = kind.law(*(mpf(one) for one in numbers), mpf(x))
            yield [*numbers, x, *(float(mp.log(one)) if one > 0 else float("-inf") for one in law)]


@cache
def read() -> dict[str, np.ndarray]:
    """The rows of each kind."""
    return {name: np.asarray(found) for name, found in json.loads(PATH.read_text()).items()}


def write() -> None:
    """Compute all rows, one a line."""
    blocks = []
    for name in KINDS:
        lines = ",\n  ".join(json.dumps(row) for row in rows(name))
        blocks.append(f"{json.dumps(name)}: [\n  {lines}\n ]")
        print(name, lines.count("\n") + 1, flush=True)
    PATH.write_text("{\n " + ",\n ".join(blocks) + "\n}\n")


if __name__ == "__main__":
    write()
