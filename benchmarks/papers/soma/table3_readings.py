"""Table 3 under other readings of what the paper leaves open: the acceptance of both samplers at both budgets.

The records are swept by a program of its own, in NumPy, which shares no code with dpjax.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

PAPER = {3: (94.81, 99.49), 30: (50.94, 91.91)}
"""Accepted by IMwG and by SOMA, in per cent, by ε."""

RELEASED = {
    3: np.array([-0.5120, -0.1326, 0.1554, 0.4520, 0.0471, -0.1216, 0.0803, -0.0676, 0.0019]),
    30: np.array([-0.5359, -0.1340, 0.0851, 0.4365, 0.1517, -0.1787, 0.0483, -0.0280, 0.0600]),
}
"""As printed: y, x₁y, x₂y, y², x₁, x₂, x₁², x₁x₂, x₂², of ten records."""

N = 10


@dataclass(frozen=True)
class Reading:
    """What the paper may have meant.

    x_bound, y_bound
        Where covariates and responses are clamped, before they are divided by these.
    sensitivity
        Of the sums; the noise of the means has scale sensitivity / (n ε).
    precision, shape, rate
        Of the prior: coefficients Normal(0, variance / precision), variance InverseGamma(shape, rate).
    half
        The factor of the sum of squares in the variance's posterior, 1/2 if it is right.
    attempts
        Among how many records SOMA selects.
    clamps
        Whether records are clamped at all.
    doubled
        Whether entries beside the diagonal count twice in the density, as in the whole matrix.
    """

    x_bound: float = 10.0
    y_bound: float = 10.0
    sensitivity: float = 12.0
    precision: float = 0.5
    shape: float = 10.0
    rate: float = 10.0
    half: float = 0.5
    attempts: int = N
    clamps: bool = True
    doubled: bool = False


READINGS = {
    "as in `table3`": Reading(),
    "sensitivity 13": Reading(sensitivity=13.0),
    "sensitivity 15": Reading(sensitivity=15.0),
    "sensitivity 9.375": Reading(sensitivity=9.375),
    "0.5 as a covariance": Reading(precision=2.0),
    "precision 0.1": Reading(precision=0.1),
    "InverseGamma(1, 1)": Reading(shape=1.0, rate=1.0),
    "no 1/2 in b_n": Reading(half=1.0),
    "not clamped": Reading(clamps=False),
    "duplicates count": Reading(doubled=True),
    "SOMA among 8": Reading(attempts=8),
    "SOMA among 7": Reading(attempts=7),
    "x to ±5, y to ±5, 24": Reading(5.0, 5.0, 24.0),
    "x to ±6, y to ±10, 14": Reading(6.0, 10.0, 14.0),
    "x to ±5, y to ±10, 15": Reading(5.0, 10.0, 15.0),
    "x to ±5, y to ±12, 13": Reading(5.0, 12.0, 13.0),
}


def measure(chains: int, sweeps: int) -> dict[str, Any]:
    """By reading, the acceptance of IMwG and SOMA in per cent, after as many sweeps of warm-up."""
    rows = {}
    for name, reading in READINGS.items():
        rates = {
            str(epsilon): [accepted(reading, epsilon, soma, chains, sweeps) for soma in (False, True)]
            for epsilon in PAPER
        }
        rows[name] = {**asdict(reading), "accepted_percent": rates}
    return {"paper": {str(epsilon): rates for epsilon, rates in PAPER.items()}, "readings": rows}


def accepted(reading: Reading, epsilon: int, soma: bool, chains: int, sweeps: int) -> float:
    """The share of proposals that chains accept, each of which starts in the prior."""
    rng = np.random.default_rng(0)
    variance = reading.rate / rng.gamma(reading.shape, size=chains)
    coef = rng.normal(size=(chains, 3)) * np.sqrt(variance / reading.precision)[:, None]
    x, y = (np.stack(each, axis=1) for each in zip(*(propose(rng, coef, variance) for _ in range(N)), strict=True))
    t = contribution(reading, x, y)
    count = 0.0
    for sweep in range(2 * sweeps):
        coef, variance = update(reading, rng, x, y)
        for place in range(N):
            moved = attempt(reading, epsilon, rng, (x, y, t), propose(rng, coef, variance), None if soma else place)
            count += moved if sweep >= sweeps else 0.0
    return 100 * count / (sweeps * N)


def propose(rng: np.random.Generator, coef: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A record for each chain."""
    x = np.array([0.9, -1.17]) + rng.normal(size=(len(coef), 2))
    return x, coef[:, 0] + np.sum(x * coef[:, 1:], axis=1) + np.sqrt(variance) * rng.normal(size=len(coef))


def contribution(reading: Reading, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What records add to the sums, in the order of the release."""
    u, v = x / reading.x_bound, y / reading.y_bound
    if reading.clamps:
        u, v = np.clip(u, -1, 1), np.clip(v, -1, 1)
    first, second = u[..., 0], u[..., 1]
    return np.stack([v, first * v, second * v, v**2, first, second, first**2, first * second, second**2], axis=-1)


def log_density(reading: Reading, epsilon: int, mean: np.ndarray) -> np.ndarray:
    """The log-density of the release given means."""
    weights = np.array([1, 1, 1, 1, 2, 2, 1, 2, 1]) if reading.doubled else 1
    return -np.sum(np.abs(RELEASED[epsilon] - mean) * weights, axis=-1) * N * epsilon / reading.sensitivity


def update(reading: Reading, rng: np.random.Generator, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients and the variance given the records."""
    design = np.concatenate([np.ones((*y.shape, 1)), x], axis=2)
    precision = np.einsum("cni,cnj->cij", design, design) + reading.precision * np.eye(3)
    mean = np.linalg.solve(precision, np.einsum("cni,cn->ci", design, y)[..., None])[..., 0]
    squares = np.sum(y**2, axis=1) - np.einsum("ci,cij,cj->c", mean, precision, mean)
    variance = (reading.rate + reading.half * squares) / rng.gamma(reading.shape + N / 2, size=len(y))
    root = np.linalg.cholesky(np.linalg.inv(precision))
    normals = np.einsum("cij,cj->ci", root, rng.normal(size=mean.shape))
    return mean + normals * np.sqrt(variance)[:, None], variance


def attempt(
    reading: Reading,
    epsilon: int,
    rng: np.random.Generator,
    records: tuple[np.ndarray, np.ndarray, np.ndarray],
    proposal: tuple[np.ndarray, np.ndarray],
    place: int | None,
) -> float:
    """One proposal in each chain, at a place or where SOMA selects; the share that is accepted."""
    x, y, t = records
    chains = np.arange(len(y))
    new = contribution(reading, *proposal)
    if place is None:
        tried = np.argsort(rng.random(y.shape), axis=1)[:, : reading.attempts]
    else:
        tried = np.full((len(y), 1), place)
    now = log_density(reading, epsilon, t.mean(axis=1))
    means = t.mean(axis=1)[:, None] + (new[:, None] - np.take_along_axis(t, tried[..., None], axis=1)) / N
    log_weights = log_density(reading, epsilon, means)
    chosen, moves = decide(rng, log_weights, now)
    places = chains[moves], tried[chains, chosen][moves]
    x[places], y[places], t[places] = proposal[0][moves], proposal[1][moves], new[moves]
    return float(np.mean(moves))


def decide(rng: np.random.Generator, log_weights: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The attempt that each chain selects by its weights [chain, attempt], and whether it is made: equation (8)."""
    chosen = np.argmax(log_weights + rng.gumbel(size=log_weights.shape), axis=1)
    top = np.maximum(log_weights.max(axis=1), now)
    weights = np.exp(log_weights - top[:, None])
    total = weights.sum(axis=1)
    rest = total - weights[np.arange(len(now)), chosen] + np.exp(now - top)
    return chosen, rng.random(len(now)) < total / np.maximum(rest, np.finfo(float).tiny)


def draw(result: dict[str, Any], axes: Any) -> None:
    """SOMA's acceptance against that of IMwG at ε = 30; the cross is the paper."""
    for name, row in result["readings"].items():
        imwg, soma = row["accepted_percent"]["30"]
        axes.plot(imwg, soma, "o", color="C0")
        axes.annotate(name, (imwg, soma), fontsize=6, xytext=(3, 3), textcoords="offset points")
    axes.plot(*result["paper"]["30"], "x", color="C3", markersize=10)
    axes.set(xlabel="IMwG accepts, % (ε = 30)", ylabel="SOMA accepts, %")
