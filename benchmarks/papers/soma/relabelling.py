"""Table 3's pairs of SOMA with the couplings of the authors' code, in NumPy, all pairs side by side.

After both chains accept, their new records move to the first place at which the chains differ, and what was there moves
to where the new records were. The authors' code moves the records and leaves the contributions to the released sum,
which it keeps until the end of the sweep, where they are. Then a later proposal of the sweep takes the wrong record's
contribution away, so that the chains no longer have the posterior as their distribution. Places are drawn by a maximal
coupling, whose rest shares one uniform number over the places in their order. `dpjax.coupling` has those first at which
the chains differ.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.papers.soma.problems import BOUND, Problem, regression
from benchmarks.papers.soma.table3 import PAPER, draw_settled

N, COVARIATES, SHAPE, SCALE, PRECISION = 10, (0.9, -1.17), 10.0, 10.0, 0.5
"""Records, the mean of their covariates, and the prior of the variance and of the coefficients."""

ATTEMPTS = 100
"""Of a draw of the second part of a maximal coupling."""


class Pairs(NamedTuple):
    """Both chains of every pair: records [2, pair, n, 3], coefficients [2, pair, 3] and variances [2, pair]."""

    records: np.ndarray
    coef: np.ndarray
    variance: np.ndarray


class Way(NamedTuple):
    """Whether contributions move with their records, and places at which chains differ are the first of the rest."""

    moves: bool
    differing_first: bool


WAYS = {"the authors'": Way(False, False), "moved": Way(True, False), "moved, differing first": Way(True, True)}


def measure(pairs: int, cap: int, epsilons: tuple[int, ...], data: str | None) -> dict[str, Any]:
    """Mean coupling times and acceptance by ε and way."""
    return {str(epsilon): measure_budget(regression(N, epsilon, data), epsilon, pairs, cap) for epsilon in epsilons}


def measure_budget(problem: Problem, epsilon: int, pairs: int, cap: int) -> dict[str, Any]:
    """The rows of one privacy budget; all ways have the same starts."""
    settled = jax.tree.map(np.asarray, draw_settled(problem))
    ways = {name: measure_way(problem, settled, way, pairs, cap) for name, way in WAYS.items()}
    return {"paper": PAPER[epsilon]["soma"][::2], "ways": ways}


def measure_way(problem: Problem, settled: Any, way: Way, pairs: int, cap: int) -> dict[str, float]:
    """The coupling times of one way in sweeps, restricted at the cap, and the acceptance of the first chains."""
    rng = np.random.default_rng(8)
    state, times, accepted = start(settled, pairs, rng), np.full(pairs, cap), []
    left = np.arange(pairs)
    for sweep in range(cap):
        state, rates = advance(state, problem, way, rng)
        accepted.append(rates)
        met = np.all(state.records[0] == state.records[1], axis=(1, 2)) & (state.variance[0] == state.variance[1])
        met &= np.all(state.coef[0] == state.coef[1], axis=1)
        times[left[met]] = sweep
        left, state = left[~met], Pairs(*(leaf[:, ~met] for leaf in state))
        if not len(left):
            break
    rates = np.concatenate(accepted)
    return {
        "mean": float(times.mean()),
        "standard_error": float(times.std(ddof=1) / np.sqrt(pairs)),
        "capped": len(left),
        "acceptance_percent": 100 * float(rates.mean()),
        "error_of_acceptance": 100 * float(rates.std(ddof=1) / np.sqrt(len(rates))),
    }


def start(settled: Any, pairs: int, rng: np.random.Generator) -> Pairs:
    """First chains at last states of runs of SOMA, second ones in the prior."""
    parameters, records = settled
    chosen = rng.integers(len(parameters["variance"]), size=pairs)
    first = np.concatenate([records["x"], records["y"][..., None]], axis=2)[chosen]
    variance = 1 / rng.gamma(SHAPE, 1 / SCALE, pairs)
    coef = rng.normal(size=(pairs, 3)) * np.sqrt(variance / PRECISION)[:, None]
    x = COVARIATES + rng.normal(size=(pairs, N, 2))
    y = predict(x, coef) + np.sqrt(variance)[:, None] * rng.normal(size=(pairs, N))
    return Pairs(
        np.stack([first, np.concatenate([x, y[..., None]], axis=2)]),
        np.stack([parameters["coef"][chosen], coef]),
        np.stack([parameters["variance"][chosen], variance]),
    )


def predict(x: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """The mean responses [..., n]."""
    return coef[..., :1] + np.einsum("...nk,...k->...n", x, coef[..., 1:])


def contributions(records: np.ndarray) -> np.ndarray:
    """What records [..., 3] add to the released value [..., 9], the statistic of `problems.regression`."""
    clamped = np.clip(records / BOUND, -1, 1)
    design, y = np.concatenate([np.ones_like(clamped[..., :1]), clamped[..., :2]], axis=-1), clamped[..., 2:]
    rows, columns = np.tril_indices(3)
    products = (design[..., rows] * design[..., columns])[..., 1:]
    found: np.ndarray = np.concatenate([design * y, y * y, products], axis=-1) / N
    return found


def advance(state: Pairs, problem: Problem, way: Way, rng: np.random.Generator) -> tuple[Pairs, np.ndarray]:
    """One sweep of n proposals and then a draw of the parameters; and the acceptance [pair] of the first chains."""
    value, scale = np.asarray(problem[1].value, float), float(problem[1].mechanism.scale)
    records, pairs = state.records.copy(), np.arange(state.records.shape[1])
    proposals = propose(state, rng)
    own, new = contributions(records), contributions(proposals)
    total, accepted = own.sum(axis=2), np.zeros(len(pairs))
    now = -np.abs(total - value).sum(axis=2) / scale
    for place in range(N):
        log_weights = -np.abs(total[:, :, None] - own + new[:, :, place, None] - value).sum(axis=3) / scale
        top = log_weights.max(axis=2, keepdims=True)
        normalizer = np.log(np.exp(log_weights - top).sum(axis=2)) + top[..., 0]
        weights = np.exp(log_weights - normalizer[..., None])
        differs = records[0, ..., 2] != records[1, ..., 2]
        chosen = choose(weights, differs & way.differing_first, rng)
        weight = np.take_along_axis(weights, chosen[..., None], axis=2)[..., 0]
        takes = rng.random(len(pairs)) < 1 / np.maximum(1 + np.exp(now - normalizer) - weight, 1e-300)
        for chain in (0, 1):
            which, at = pairs[takes[chain]], chosen[chain, takes[chain]]
            total[chain, which] += new[chain, which, place] - own[chain, which, at]
            records[chain, which, at], own[chain, which, at] = proposals[chain, which, place], new[chain, which, place]
            now[chain, which] = log_weights[chain, which, at]
        accepted += takes[0] / N
        differs = records[0, ..., 2] != records[1, ..., 2]
        which = np.flatnonzero(takes.all(axis=0) & differs.any(axis=1))
        first = np.argmax(differs[which], axis=1)
        for chain in (0, 1):
            at = chosen[chain, which]
            for values in (records, own) if way.moves else (records,):
                exchange(values[chain], which, at, first)
    return draw_parameters(records, rng), accepted


def exchange(values: np.ndarray, which: np.ndarray, one: np.ndarray, other: np.ndarray) -> None:
    """Exchange the entries [pair, place, ...] at two places of some pairs."""
    values[which, one], values[which, other] = values[which, other].copy(), values[which, one].copy()


def propose(state: Pairs, rng: np.random.Generator) -> np.ndarray:
    """Proposals [2, pair, n, 3] with the same covariates, and responses by maximal couplings."""
    x = COVARIATES + rng.normal(size=(state.records.shape[1], N, 2))
    means, deviations = predict(x[None], state.coef), np.sqrt(state.variance)[..., None]

    def log_density(chain: int, y: np.ndarray) -> np.ndarray:
        return -0.5 * ((y - means[chain]) / deviations[chain]) ** 2 - np.log(deviations[chain])

    def draw(chain: int) -> np.ndarray:
        return means[chain] + deviations[chain] * rng.normal(size=means[chain].shape)

    responses = couple(draw, log_density, rng)
    return np.stack([np.concatenate([x, y[..., None]], axis=2) for y in responses])


def couple(draw: Any, log_density: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draws of both chains that are the same as often as can be: densities have one dimension fewer, or as many."""
    first = draw(0)
    ratio = log_density(1, first) - log_density(0, first)
    done = np.log(rng.random(ratio.shape)) < ratio
    second = first.copy()
    for _ in range(ATTEMPTS):
        if done.all():
            break
        tried = draw(1)
        takes = ~done & (np.log(rng.random(ratio.shape)) > log_density(0, tried) - log_density(1, tried))
        second[takes], done = tried[takes], done | takes
    return first, second


def choose(weights: np.ndarray, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Places [2, pair] by a maximal coupling of weights [2, pair, n], whose rests share a uniform number.

    Some places [pair, n] are the first of the rest.
    """
    shared = weights.min(axis=0)
    level = rng.random(shared.shape[0])
    together = level < shared.sum(axis=1)
    common = np.sum(np.cumsum(shared, axis=1) < level[:, None], axis=1)
    order = np.argsort(~first, axis=1, kind="stable")
    rests = np.take_along_axis(weights - shared, order[None], axis=2)
    levels = np.cumsum(rests, axis=2) + shared.sum(axis=1)[:, None]
    places = np.minimum(np.sum(levels < level[:, None], axis=2), N - 1)
    rest = np.take_along_axis(order[None], places[..., None], axis=2)[..., 0]
    found: np.ndarray = np.where(together, np.minimum(common, N - 1), rest)
    return found


def draw_parameters(records: np.ndarray, rng: np.random.Generator) -> Pairs:
    """The variance and then the coefficients given the records, by maximal couplings."""
    design = np.concatenate([np.ones_like(records[..., :1]), records[..., :2]], axis=3)
    precision = np.einsum("...ni,...nj->...ij", design, design) + PRECISION * np.eye(3)
    mean = np.linalg.solve(precision, np.einsum("...ni,...n->...i", design, records[..., 2])[..., None])[..., 0]
    squares = np.sum(records[..., 2] ** 2, axis=2) - np.einsum("...i,...ij,...j->...", mean, precision, mean)
    shape, rate = SHAPE + N / 2, SCALE + squares / 2

    def log_gamma(chain: int, number: np.ndarray) -> np.ndarray:
        return shape * np.log(rate[chain]) - rate[chain] * number

    inverse = np.stack(couple(lambda chain: rng.gamma(shape, 1 / rate[chain]), log_gamma, rng))
    factors = np.linalg.cholesky(precision) * np.sqrt(inverse)[..., None, None]

    def log_normal(chain: int, coef: np.ndarray) -> np.ndarray:
        scaled = np.einsum("pij,pi->pj", factors[chain], coef - mean[chain])
        return np.log(np.einsum("pii->pi", factors[chain])).sum(axis=1) - 0.5 * np.sum(scaled**2, axis=1)

    def draw(chain: int) -> np.ndarray:
        normals = rng.normal(size=mean[chain].shape)
        return mean[chain] + np.linalg.solve(np.swapaxes(factors[chain], 1, 2), normals[..., None])[..., 0]

    return Pairs(records, np.stack(couple(draw, log_normal, rng)), 1 / inverse)


def draw(result: dict[str, Any], axes: Any) -> None:
    """Mean coupling times, and lines at the paper's."""
    budgets = {epsilon: row for epsilon, row in result.items() if epsilon.isdigit()}
    for color, (epsilon, row) in enumerate(budgets.items()):
        found = row["ways"].values()
        labels = [f"ε = {epsilon}, {name}" for name in row["ways"]]
        errors = [way["standard_error"] for way in found]
        axes.barh(labels, [way["mean"] for way in found], xerr=errors, color=f"C{color}")
        axes.axvline(row["paper"][0], color=f"C{color}", linestyle="--", label=f"paper, ε = {epsilon}")
    axes.legend()
    axes.set_xlabel("mean coupling time of SOMA in sweeps")
