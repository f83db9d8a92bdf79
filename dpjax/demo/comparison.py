"""One release analysed three ways, as text."""

from dataclasses import dataclass

import numpy as np

from dpjax import diagnostics

Answer = dict[str, np.ndarray]
"""Draws by quantity: [draw], or [chain, draw] from Markov chains."""

WAYS = ("non-private", "naive", "dpjax")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Posterior draws of the same quantities from the confidential data, and from a release read in two ways.

    Parameters
    ----------
    title
        Of the data set.
    measure
        What the quantities are, with their unit.
    non_private, naive, dpjax
        The answers, with the same quantities in the same order.
    reference
        A value of the quantities that means no difference, if there is one.
    """

    title: str
    measure: str
    non_private: Answer
    naive: Answer
    dpjax: Answer
    reference: float | None = None

    @property
    def answers(self) -> dict[str, Answer]:
        """The three answers by the names of `WAYS`."""
        return dict(zip(WAYS, (self.non_private, self.naive, self.dpjax), strict=True))

    def __str__(self) -> str:
        names = max(map(len, self.dpjax))
        lines = [f"  {'':{names}}" + "".join(f"{way:>26}" for way in WAYS)]
        for name in self.dpjax:
            cells = [f"{describe_draws(answer[name]):>26}" for answer in self.answers.values()]
            lines.append(f"  {name:{names}}" + "".join(cells))
        return "\n".join([f"  {self.measure}: mean and 95 % interval", *lines, f"  {self.convergence()}"])

    def convergence(self) -> str:
        """The worst diagnostics of the chains."""
        chains = list(self.dpjax.values())
        r_hat = max(float(diagnostics.split_r_hat(draws)) for draws in chains)
        ess = min(min(float(diagnostics.ess_bulk(draws)), float(diagnostics.ess_tail(draws))) for draws in chains)
        return f"R-hat is at most {r_hat:.3f}, the effective sample size at least {ess:,.0f}."


def describe_draws(draws: np.ndarray) -> str:
    """Mean and 95 % interval of draws of any shape."""
    low, high = interval(draws)
    return f"{np.mean(draws):.2f} [{low:.2f}, {high:.2f}]"


def interval(draws: np.ndarray) -> tuple[float, float]:
    """The central 95 % interval of draws of any shape."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def announce(title: str, **facts: str) -> None:
    """Print what is about to be analysed, before the wait."""
    print(title)
    for name, fact in facts.items():
        print(f"  {name:<11}{fact}")
