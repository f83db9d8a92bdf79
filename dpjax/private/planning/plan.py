"""Settings of DP-HMC from public information: no privacy is spent on tuning."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from dpjax.base import Array, Key
from dpjax.private import accounting
from dpjax.private.accounting.budget import Budget
from dpjax.private.arguments import check_real, check_target
from dpjax.private.planning.energy import Energy, choose_energy, list_energies
from dpjax.private.planning.forecast import advise, check_worth, even_dimension, forecast
from dpjax.private.planning.pilot import explore
from dpjax.private.targets.target import Target
from dpjax.validation import check_count, check_key, fail

__all__ = ["Plan", "plan"]

Source = Literal["public", "synthetic"]

LARGEST_STEP = 0.5
"""The largest step, in units of the stiffest deviation: a quarter of what leapfrog is stable at."""
TAU_MARGIN = 1e-4
"""More noise than needed by this part, for the cost of rounding to a grid."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Settings for `dp_hmc`, made without the confidential records.

    Attributes
    ----------
    step_size, num_leapfrog, mass
        η, L and M [d, d], the precision that the pilot predicts.
    gradient_bound, ratio_bound
        b_g and b_l.
    tau_g, tau_l
        The noise, such that `num_iterations` of each chain spend the budget.
    num_iterations
        Iterations of each chain.
    acceptance_rate
        What the plan predicts for a move of average length, without clipping and discretization.
    effective_draws, num_warmup
        How many independent draws the run is expected to be worth, over all chains, once the first `num_warmup`
        iterations of each, its way from the start, are left out.
    mode : [d]
        The pilot's mode; chains start around it.
    unravel
        From a vector [d] to the parameters.
    assumptions
        What the plan rests on, in words.
    """

    step_size: float
    num_leapfrog: int
    mass: np.ndarray
    gradient_bound: float
    ratio_bound: float
    tau_g: float
    tau_l: float
    num_iterations: int
    acceptance_rate: float
    effective_draws: float
    num_warmup: int
    mode: np.ndarray
    unravel: Callable[[Array], Any]
    assumptions: tuple[str, ...]

    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `dp_hmc`."""
        names = ("step_size", "num_leapfrog", "mass", "gradient_bound", "ratio_bound", "tau_g", "tau_l")
        return {name: getattr(self, name) for name in names}

    def starts(self, key: Key, num_chains: int) -> Any:
        """Starting points, with leading axis [chains], drawn around the pilot's mode with the precision it predicts."""
        check_key("key", key)
        normals = jax.random.normal(key, (check_count("num_chains", num_chains), len(self.mode)), self.mode.dtype)
        vectors = self.mode + np.asarray(normals) @ np.linalg.inv(np.linalg.cholesky(self.mass))
        return jax.vmap(self.unravel)(jnp.asarray(vectors, self.mode.dtype))

    def __str__(self) -> str:
        return "\n".join(
            [f"{name} = {value}" for name, value in self.settings().items() if name != "mass"]
            + [f"{name} = {getattr(self, name)}" for name in ("num_iterations", "num_warmup")]
            + [f"effective_draws = {self.effective_draws:.3g}"]
            + ["assumes:", *(f"- {line}" for line in self.assumptions)]
        )


def plan(
    key: Key,
    pilot: Target,
    *,
    source: Source,
    num_records: int,
    budget: Budget,
    num_chains: int,
    num_iterations: int,
    clipped_ratios: float = 0.01,
) -> Plan:
    """Settings of `dp_hmc` that spend a budget on a number of iterations, from public information.

    Parameters
    ----------
    key
        A typed key, for draws around the pilot's mode.
    pilot
        The model with records that need no protection: published ones, or ones drawn from the model at plausible
        parameters. **Never the confidential ones**: settings computed from those tell of them, and nothing accounts
        for it. Their number is of no account as long as they determine the parameters.
    source
        Where the pilot's records come from, ``"public"`` or ``"synthetic"``: there is no default, so that it is said.
    num_records
        n of the confidential records: their number where it is public, a guess otherwise.
    budget
        What the run may spend, all of it.
    num_chains, num_iterations
        How many chains of how many iterations share it. More iterations mean more noise and shorter moves.
    clipped_ratios
        The largest fraction of the pilot's log-likelihood ratios that are clipped; fewer are where that would shift the
        draws by more than a tenth of a deviation. (Clipped gradients cost acceptance alone, and the plan chooses.)

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, the pilot does not determine the parameters, or the run is expected to be worth
        less than a handful of draws.

    Warns
    -----
    UserWarning
        If the run is expected to be worth less than 100 independent draws.

    Notes
    -----
    What a budget buys is nearly a number of independent draws: with more iterations each moves less. So one long chain
    is better than several short ones, each of which pays for its own way from the start, and the plan says how many
    iterations are enough.

    `Energy` has the formulas. The length of a trajectory is such that the noise in its energy has variance 3, or 1.5
    where less is left then; the budget is divided, and the gradients' bound chosen, for the longest such trajectory.
    """
    check_arguments(key, pilot, source, budget, clipped_ratios)
    num_chains, num_iterations = check_count("num_chains", num_chains), check_count("num_iterations", num_iterations)
    total = num_chains * num_iterations
    facts = explore(key, pilot, check_count("num_records", num_records))
    factor = accounting.sensitivity(1.0, budget.neighbours) / 2  # noise of 2 τ b is 2 τ sensitivities of b
    affordable = accounting.largest_mu(budget.epsilon, budget.delta) / factor**2
    energies = list_energies(facts, clipped_ratios)
    energy, ratio = choose_energy(energies, affordable / total), num_records / pilot.num_records
    length, spread = energy.length(), even_dimension(facts.precision)
    expected = forecast(energies, affordable, spread, sqrt(1 + ratio), num_chains, num_iterations)
    check_worth(expected, num_chains, num_iterations)
    num_leapfrog = max(2, ceil(length * sqrt(facts.stiffness) / LARGEST_STEP))
    taus = accounting.taus_for(
        budget.epsilon, budget.delta, total, num_leapfrog, gradient_share=energy.gradient_share(length)
    )
    assert taus.tau_g is not None
    more = factor * (1 + TAU_MARGIN)
    return Plan(
        step_size=length / num_leapfrog,
        num_leapfrog=num_leapfrog,
        mass=facts.precision,
        gradient_bound=energy.gradient_bound,
        ratio_bound=energy.ratio_bound,
        tau_g=more * taus.tau_g,
        tau_l=more * taus.tau_l,
        num_iterations=num_iterations,
        acceptance_rate=2 * float(ndtr(-sqrt(energy.variance(length)) / 2)),
        effective_draws=expected.run.effective_draws,
        num_warmup=expected.run.num_warmup,
        mode=facts.mode,
        unravel=pilot.unravel,
        assumptions=describe(source, ratio, budget, num_chains, energy, clipped_ratios) + advise(expected),
    )


def describe(
    source: Source, ratio: float, budget: Budget, num_chains: int, energy: Energy, clipped_ratios: float
) -> tuple[str, ...]:
    """What a plan assumed, in words; `ratio` is n over the number of the pilot's records."""
    return (
        f"the pilot's records are {source}, as stated: nothing was computed from confidential ones",
        f"there are {ratio:.3g} times as many confidential records, and their number is no secret",
        f"they scatter like the pilot's, of which {energy.clipped:.1%} of the gradients and at most"
        f" {clipped_ratios:.1%} of the log-likelihood ratios are clipped; if more ratios are, the draws are biased",
        "the posterior is close to a normal law of the precision found at the pilot's mode, and chains that start there"
        f" are about {sqrt(1 + ratio):.2g} posterior deviations from its centre even if the pilot has the same law",
        f"moves have length {energy.length():.3g} on its scale",
        f"the whole budget {budget} goes to {num_chains} chains: nothing is left for a second run",
    )


def check_arguments(key: Key, pilot: object, source: object, budget: object, clipped_ratios: float) -> None:
    """Raise unless the pilot is a target, the source is named, the budget is one, and the fraction is a fraction."""
    check_key("key", key)
    check_target("pilot", pilot)
    if source not in ("public", "synthetic"):
        remedy = "Say where the pilot's records come from; confidential ones must not be used."
        fail("source", repr(source), "'public' or 'synthetic'", remedy)
    if not isinstance(budget, Budget):
        fail("budget", type(budget).__name__, "a dpjax.private.Budget", "State ε, δ and neighbours.", error=TypeError)
    if not 0 <= check_real("clipped_ratios", clipped_ratios) < 1:
        remedy = "Pass the part of the pilot's records that may be clipped."
        fail("clipped_ratios", clipped_ratios, "a fraction in [0, 1)", remedy)
