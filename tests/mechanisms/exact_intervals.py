"""Log-densities of noise that was rounded, drawn anew or taken modulo a number, and of quotients, in 50 digits.

``python -m tests.mechanisms.exact_intervals`` writes them down in `tests/references/intervals.json`.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

from dpjax.mechanisms import DiscreteLaplace, Gaussian, Laplace, Modulo, Rounded, SumOf, Truncated
from tests.mechanisms.exact_densities import Law, either_side, laplace_beside_normal, normal, whole_laplaces

PATH = Path(__file__).parents[1] / "references" / "intervals.json"
MODULUS, WRAPS = 8.0, 40

Noise = tuple[Callable[..., Any], Callable[..., Law], Sequence[tuple[float, ...]]]
"""The mechanism of arrays of its scales, its density and tail at them and a distance, and the scales."""

NOISES: dict[str, Noise] = {
    "Laplace": (lambda b: Laplace(b), lambda b, x: laplace_beside_normal(b, 0, x), [(1.3125,)]),
    "Gaussian": (lambda s: Gaussian(s), normal, [(1.1875,)]),
    "Laplace and Gaussian": (
        lambda b, s: SumOf([Laplace(b), Gaussian(s)]),
        laplace_beside_normal,
        [(1.3125, 1.1875 * ratio) for ratio in (2.0**-20, 2.0**-10, 2.0**-3, 2.0**3)],
    ),
}
WHOLE: Noise = (
    lambda b: DiscreteLaplace(b),
    lambda b, k: whole_laplaces([b], k),
    [(0.6875,), (57.0,), (1.3125 * 2.0**16,)],
)


class Kind(NamedTuple):
    """Noise that something was done to.

    Attributes
    ----------
    build
        The mechanism of arrays [n] of its numbers.
    log_density
        The log-density at the numbers, a value and a statistic, and the largest logarithm that it is made of.
    cases
        Numbers, a value and a statistic.
    """

    build: Callable[..., Any]
    log_density: Callable[..., Any]
    cases: Iterator[tuple[float, ...]]


def log_between(law: Callable[[Any], Law], low: Any, high: Any) -> Any:
    """The log-probability of symmetric noise from low to high."""
    if high < 0:
        low, high = -high, -low
    return mp.log(either_side(law, low)[1] - either_side(law, high)[1])


def rounded(noise: Noise, steps: Sequence[float], *, is_whole: bool = False) -> Kind:
    """Noise rounded to multiples of its last number, an odd one if it is whole."""
    build, law, scales = noise

    def log_density(*given: Any) -> Any:
        *numbers, step, value, statistic = given
        centre = abs(value - statistic)
        low, high = centre - step / 2, centre + step / 2
        if is_whole:
            low, high = mp.ceil(low), mp.floor(high) + 1
            found = mp.log(law(*numbers, low)[1] - law(*numbers, high)[1])
        else:
            found = log_between(lambda x: law(*numbers, x), low, high)
        return found, abs(found)

    def cases() -> Iterator[tuple[float, ...]]:
        for numbers, step in product(scales, steps):
            for distance in (0.0, 2.0**-8, 0.3125, 3.5, 29.0, 2.0**10 * 1.25, 2.0**20 * 1.375):
                multiple = round(distance * max(numbers) / step)
                if is_whole and multiple * step > 2**24:
                    continue  # whole numbers that single precision does not hold
                for sign in (1, -1):
                    offset = 1.0 if is_whole else 0.375 * step
                    yield (*numbers, step, sign * multiple * step, offset if multiple < 2**20 else 0.0)

    return Kind(lambda *numbers: Rounded(build(*numbers[:-1]), numbers[-1]), log_density, cases())


def truncated(noise: Noise, upper: float | None) -> Kind:
    """Noise drawn anew until the value is at least 0, and below a bound if there is one."""
    build, law, scales = noise

    def log_density(*given: Any) -> Any:
        *numbers, value, statistic = given
        one = lambda x: law(*numbers, x)  # noqa: E731
        share = (
            mp.log(either_side(one, -statistic)[1])
            if upper is None
            else log_between(one, -statistic, upper - statistic)
        )
        own = mp.log(law(*numbers, abs(value - statistic))[0])
        return own - share, max(abs(own), abs(share))

    def cases() -> Iterator[tuple[float, ...]]:
        for numbers, size in product(scales, (0.0, 0.3125, 3.5, 29.0, 2.0**10 * 1.25)):
            for value, sign in product((0.25, 0.75 if upper is not None else 9.0), (1, -1)):
                yield (*numbers, value, sign * size)

    return Kind(lambda *numbers: Truncated(build(*numbers), 0.0, upper), log_density, cases())


def wrapped(noise: Noise) -> Kind:
    """Noise taken modulo 8."""
    build, law, scales = noise

    def log_density(*given: Any) -> Any:
        *numbers, value, statistic = given
        near = value - statistic - MODULUS * mp.nint((value - statistic) / MODULUS)
        found = mp.log(mp.fsum(law(*numbers, abs(near + MODULUS * k))[0] for k in range(-WRAPS, WRAPS + 1)))
        return found, abs(found)

    def cases() -> Iterator[tuple[float, ...]]:
        for numbers in scales:
            for value, statistic in product((0.0, 0.5, 3.0, 7.5), (0.25, 1000.125, -30.0)):
                yield (*numbers, value, statistic)

    return Kind(lambda *numbers: Modulo(build(*numbers), MODULUS), log_density, cases())


STEPS = (2.0**-20, 2.0**-12, 2.0**-6, 0.5, 4.0)
KINDS: dict[str, Kind] = {
    **{f"{name}, rounded": rounded(noise, STEPS) for name, noise in NOISES.items()},
    "DiscreteLaplace, rounded": rounded(WHOLE, (1.0, 5.0, 1025.0), is_whole=True),
    **{f"{name}, at least 0": truncated(noise, None) for name, noise in NOISES.items()},
    **{f"{name}, from 0 to 1": truncated(noise, 1.0) for name, noise in NOISES.items()},
    **{f"{name}, modulo 8": wrapped(noise) for name, noise in NOISES.items()},
}


QUOTIENTS = [
    (848407.25, 37.5, 22789038.0, 0.00455, 528.5),
    (57387.125, -0.2485, 6916264.0, 8.97, 49.625),
    (3480.0, -5580.875, 17877.0, 0.05605, 901.75),
    (-3050.34375, -4657.078125, 1.52673888, 0.00581, 5.06),
    (4.39e-05, -31.484375, 395.5, 92.21875, 0.0605),
    (2.0, 80.0, 40.0, 4.0, 1.0),
    (0.0, 3.0, 1.0, 2.0, 5.0),
]
"""A value, a numerator, a denominator, and the scales of their noise: steep, flat, and as usual."""


def quotient_density(shapes: str, *given: Any) -> Any:
    """The log-density of a quotient of noisy numbers, by quadrature over the noisy denominator w."""
    value, top, bottom, top_scale, bottom_scale = given
    logs = {"gaussian": lambda x: -(x**2) / 2 - mp.log(2 * mp.pi) / 2, "laplace": lambda x: -abs(x) - mp.log(2)}
    numerator, denominator = (logs[shape] for shape in shapes.split(" by "))

    def log_term(w: Any) -> Any:
        return numerator((value * w - top) / top_scale) + denominator((w - bottom) / bottom_scale)

    widths = [bottom_scale, *([top_scale / abs(value)] if value else [])]
    pulls = [min(widths) ** 2 / max(widths), widths[0] ** 2 / widths[-1], widths[-1] ** 2 / widths[0]]
    centres = {mpf(0), bottom, *([top / value] if value else [])}
    centres |= {centre + sign * pull for centre in centres for pull in pulls for sign in (1, -1)}
    if value:
        weights = [1 / width**2 for width in widths]
        centres.add((bottom * weights[0] + top / value * weights[1]) / sum(weights))
    places = {centre + width * step for centre in centres for width in widths for step in (-60, -8, -1, 0, 1, 8, 60)}
    peak = max(log_term(place) for place in places)
    near = sorted(place for place in places if log_term(place) > peak - 400)
    ends = [near[0] - 100 * min(widths), *near, near[-1] + 100 * min(widths)]
    total = mp.fsum(
        mp.quad(lambda w: abs(w) * mp.exp(log_term(w) - peak), pair, maxdegree=5) for pair in pairwise(ends)
    )
    return mp.log(total) + peak - mp.log(top_scale * bottom_scale)


def quotient_rows(shapes: str) -> Iterator[list[float]]:
    """The numbers, the log-density, and how far it moves for a relative unit of the first three."""
    with mp.workdps(60):
        for case in QUOTIENTS:
            given = [mpf(float(np.float32(one))) for one in case]
            exact, unit = quotient_density(shapes, *given), mpf(10) ** -12
            moved = [
                quotient_density(shapes, *(one * (1 + unit * (k == place)) for k, one in enumerate(given)))
                for place in range(3)
            ]
            size = max(abs(exact), mp.fsum(abs(one - exact) for one in moved) / unit)
            yield [*map(float, given), float(exact), float(size)]


SHAPES = [f"{top} by {bottom}" for top in ("gaussian", "laplace") for bottom in ("gaussian", "laplace")]


@cache
def read() -> dict[str, np.ndarray]:
    """The rows of each kind: its numbers, a value, a statistic, the log-density, and the largest logarithm in it."""
    return {name: np.asarray(found) for name, found in json.loads(PATH.read_text()).items()}


def write() -> None:
    """Compute all rows, one a line."""
    blocks, tables = [], {shapes: list(quotient_rows(shapes)) for shapes in SHAPES}
    for name, kind in KINDS.items():
        cases = sorted({case for case in kind.cases if all(float(np.float32(one)) == one for one in case)})
        tables[name] = [[*case, *map(float, kind.log_density(*map(mpf, case)))] for case in cases]
    for name, rows in tables.items():
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        blocks.append(f"{json.dumps(name)}: [\n  {lines}\n ]")
        print(name, len(rows), flush=True)
    PATH.write_text("{\n " + ",\n ".join(blocks) + "\n}\n")


if __name__ == "__main__":
    write()
