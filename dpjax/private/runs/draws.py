"""The result of a private run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.lazy import implemented_by
from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_count, fail
from dpjax.diagnostics.summary import QUANTILES, Summary, summarize, tabulate
from dpjax.diagnostics.warnings import name_stuck, warn_of_poor_mixing
from dpjax.private.accounting.ledger import Ledger, PrivacySpent

__all__ = ["Diagnostics", "PrivateDraws"]

LEAST_DRAWS = 4
REMEDY = (
    "Leave out the warm-up (num_warmup), and report the errors with the estimates: more iterations cost privacy,"
    " and one long chain spends fewer of them on warm-up than several short ones."
)
STARTS = "Chains that disagree or never move may have bad starts (positions) or proposals that are never accepted."


class Diagnostics(NamedTuple):
    """Per-chain means [chains] over the iterations, **not private**: for the data holder's eyes, not for publication.

    Attributes
    ----------
    acceptance_rate
        The fraction of proposals that were accepted.
    clipped_gradients
        The fraction of records whose gradient was clipped; NaN if there are none.
    clipped_ratios
        The fraction of records whose log-likelihood ratio was clipped; NaN if there are none.

    Examples
    --------
    >>> from dpjax.private import Diagnostics
    >>> import numpy as np
    >>> report = Diagnostics(np.array([0.8, 0.7]), clipped_gradients=np.zeros(2), clipped_ratios=np.array([0.01, 0.02]))
    >>> float(report.acceptance_rate.mean())
    0.75
    """

    acceptance_rate: np.ndarray
    clipped_gradients: np.ndarray
    clipped_ratios: np.ndarray


@names_methods
@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """The result of a private run. It can be pickled; the ledger in the copy is a record that cannot be charged.

    Attributes
    ----------
    draws
        A pytree with leading axes [chains, draws], on the scale of the model. This alone is what the budget is spent
        on.
    not_private
        `Diagnostics`; showing them to anyone else costs privacy that nothing accounts for.
    ledger
        The ledger that was charged.
    num_iterations
        Iterations of each chain that were made.
    thin
        The number of iterations per kept draw.
    final_states
        The kernel's states of the chains after the last iteration, leaves [chains, ...]: functions of the answers that
        were charged. Passed as `positions`, a result goes on from them.
    parts
        How many of the iterations each part of the run has made, by the marks under which the ledger was charged.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> records = {"y": jnp.array([0.2, -0.4, 1.1, 0.3])}
    >>> target = private.target(
    ...     lambda theta, record: -0.5 * (record["y"] - theta) ** 2,
    ...     lambda theta: -0.5 * theta**2,
    ...     records,
    ...     position=jnp.zeros(()),
    ... )
    >>> kernel = private.dp_penalty(target, private.noise.jax, proposal_scale=0.5, ratio_bound=1.0, tau=50.0)
    >>> ledger = private.Ledger(private.Budget(4.0, 1e-6, neighbours="replace-one"))
    >>> published = private.sample(jax.random.key(1), kernel, jnp.zeros(2), ledger, num_iterations=20)
    >>> published.draws.shape, published.privacy_spent().num_queries
    ((2, 20), 40)
    """

    draws: Any
    not_private: Diagnostics
    ledger: Ledger
    num_iterations: int
    thin: int
    final_states: Any
    parts: Mapping[str, int]

    def privacy_spent(self) -> PrivacySpent:
        """The privacy cost of everything charged to the ledger, this run and earlier ones; quote its budget instead.

        The end of a run may depend on its draws, as when no proposal is accepted, and so may this number. It is then no
        guarantee: that is ``ledger.budget``.
        """
        return self.ledger.privacy_spent()

    def named_draws(self, num_warmup: int = 0) -> dict[str, np.ndarray]:
        """The draws as arrays [chains, draws, ...] by name, without the first `num_warmup` draws of each chain.

        Parameters that are not a dict are named by their paths, and a single array is called ``position``.
        """
        skipped = check_count("num_warmup", num_warmup, "Pass how many draws to leave out.", least=0)
        paths = jax.tree.leaves_with_path(self.draws)
        names = [jax.tree_util.keystr(path, simple=True, separator=".") or "position" for path, _ in paths]
        named = {name: np.asarray(leaf)[:, skipped:] for name, (_, leaf) in zip(names, paths, strict=True)}
        left = min(leaf.shape[1] for leaf in named.values())
        if left < LEAST_DRAWS:
            expected = f"a number that leaves at least {LEAST_DRAWS} draws"
            fail("num_warmup", skipped, expected, "Leave out fewer, or let the run go on.")
        return named

    def summary(self, num_warmup: int = 0, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, sd, quantiles, their Monte Carlo standard errors, effective sample sizes and R-hat of every parameter.

        It is a function of the published draws and costs nothing.

        Parameters
        ----------
        num_warmup
            How many draws of each chain to leave out as its warm-up. `Plan` forecasts them.
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.

        Warns
        -----
        UserWarning
            If some R-hat is above 1.01 or some effective sample size below 400, or a chain never moved: the estimates
            are then unreliable.
        """
        named = self.named_draws(num_warmup)
        table = tabulate({name: summarize(leaf, quantiles) for name, leaf in named.items()})
        free = {name: np.ones(leaf.shape[2:], bool) for name, leaf in named.items()}
        warn_of_poor_mixing(table, REMEDY, name_stuck(named, free), STARTS)
        return table

    @implemented_by("dpjax.adapters.arviz.private_to_arviz")
    def to_arviz(self, num_warmup: int = 0) -> Any:
        """The draws for ArviZ, and nothing that is not private; `num_warmup` as in `summary`.

        Raises
        ------
        ImportError
            If arviz is not installed, by ``pip install arviz``.
        """

    def __repr__(self) -> str:
        chains, draws = jax.tree.leaves(self.draws)[0].shape[:2]
        return f"PrivateDraws({chains} chains of {draws} draws, num_iterations={self.num_iterations}, {self.ledger})"
