"""One data set analysed three ways, as text."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from dpjax.base import Array
from dpjax.diagnostics import convergence

Answer = dict[str, np.ndarray]
"""Draws by quantity: [draw], or [chain, draw] from Markov chains."""

WAYS = ("non-private", "naive", "dpjax")
WIDTH = 26

NUM_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Comparison:
    """Posterior draws of the same quantities from the confidential data, and from a release with and without its noise.

    Parameters
    ----------
    title
        The data set, for the figure.
    promise
        The mechanism and its privacy, for the figure.
    measure
        The kind of quantity, with its unit.
    non_private
        The draws from the confidential data.
    naive
        Those from the release as if it had no noise, with the same quantities in the same order.
    dpjax
        Those of dpjax, likewise.
    """

    title: str
    promise: str
    measure: str
    non_private: Answer
    naive: Answer
    dpjax: Answer

    @property
    def answers(self) -> dict[str, Answer]:
        """The three answers by the names of `WAYS`."""
        return dict(zip(WAYS, (self.non_private, self.naive, self.dpjax), strict=True))

    def __str__(self) -> str:
        title = f"  {self.measure}: mean and 95 % interval"
        widest = max(map(len, self.dpjax))
        header = f"  {'':{widest}}" + "".join(f"{way:>{WIDTH}}" for way in WAYS)
        rows = [f"  {name:{widest}}" + self.row(name) for name in self.dpjax]
        return "\n".join([title, header, *rows, self.convergence()])

    def row(self, name: str) -> str:
        """The three answers for one quantity."""
        return "".join(f"{describe_draws(answer[name]):>{WIDTH}}" for answer in self.answers.values())

    def convergence(self) -> str:
        """The worst diagnostics of the chains."""
        chains = list(self.dpjax.values())
        r_hat = max(float(convergence.split_r_hat(draws)) for draws in chains)
        ess = min(min(float(convergence.ess_bulk(draws)), float(convergence.ess_tail(draws))) for draws in chains)
        return f"  R-hat is at most {r_hat:.3f}, the effective sample size at least {ess:,.0f}."


def describe_draws(draws: np.ndarray) -> str:
    """Mean and 95 % interval of draws of any shape."""
    low, high = interval(draws)
    return f"{np.mean(draws):.2f} [{low:.2f}, {high:.2f}]"


def interval(draws: np.ndarray) -> tuple[float, float]:
    """The central 95 % interval of draws of any shape."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def announce(title: str, **facts: str) -> None:
    """Print a description of the data and the release."""
    lines = [title, *(f"  {name:<11}{fact}" for name, fact in facts.items())]
    print("\n".join(lines), flush=True)


def draw_tables(random: Generator, counts: Array) -> np.ndarray:
    """Cell probabilities [draw, c] given counts [c] under the uniform prior; negative counts are read as 0."""
    return random.dirichlet(1 + np.maximum(np.asarray(counts, float), 0), NUM_DRAWS)
