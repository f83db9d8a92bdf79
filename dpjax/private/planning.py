"""Settings of DP-HMC from public information: no privacy is spent on tuning."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, cos, sqrt
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from dpjax.base import Array, Key
from dpjax.private import accounting
from dpjax.private.budget import Budget
from dpjax.private.pilot import Pilot, explore
from dpjax.private.target import Target
from dpjax.validation import check_count, check_key, fail

__all__ = ["Plan", "plan"]

Source = Literal["public", "synthetic"]

LONGEST = 1.5
"""The longest trajectory, in periods over 2π: after a quarter of one a harmonic oscillator has forgotten its place."""
SHORTEST = 1e-6
LARGEST_STEP = 0.5
"""The largest step, in units of the stiffest deviation: a quarter of what leapfrog is stable at."""
ENERGY_VARIANCE = 3.0
"""Of the noise in the acceptance test; an acceptance of 2Φ(−√3 / 2) = 0.39 without clipping and discretization."""
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
            + [f"num_iterations = {self.num_iterations}", "assumes:", *(f"- {line}" for line in self.assumptions)]
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
    clipped_gradients: float = 0.25,
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
    clipped_gradients
        The fraction of the pilot's gradients that are clipped; clipping them costs acceptance and buys less noise.
    clipped_ratios
        The fraction of the pilot's log-likelihood ratios that are clipped; clipping them biases the draws.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or the pilot does not determine the parameters.

    Notes
    -----
    In coordinates in which the posterior is N(0, I), a trajectory of length T moves by D² = 2 (1 − cos T) tr Σ. With k
    iterations and parts μ_l and μ_g of the budget's μ, the noise of the test has variance 2 k b_l² D² / μ_l, and that
    of the gradients kicks the energy with variance 2 k b_g² T² tr Σ (L + 1)(L − 1/2) / (L² μ_g). The parts are chosen
    for the least sum of both, and T such that the sum is 3, or 1.5 where less is left then.
    """
    check_arguments(key, source, budget, clipped_gradients, clipped_ratios)
    total = check_count("num_chains", num_chains) * check_count("num_iterations", num_iterations)
    facts = explore(key, pilot, check_count("num_records", num_records))
    fractions = (clipped_gradients, clipped_ratios)
    bounds = choose_bounds(facts, *fractions)
    factor = (
        accounting.sensitivity(1.0, budget.neighbours) / 2
    )  # noise 2 τ b is more than τ sensitivities if they are b
    affordable = accounting.largest_mu(budget.epsilon, budget.delta) / (factor**2 * total)
    variances = unit_variances(facts, *bounds)
    length = choose_length(variances, affordable)
    in_test, of_gradients = (sqrt(variance) for variance in variances(length))
    num_leapfrog = max(2, ceil(length * sqrt(facts.stiffness) / LARGEST_STEP))
    share = of_gradients / (in_test + of_gradients)
    taus = accounting.taus_for(budget.epsilon, budget.delta, total, num_leapfrog, gradient_share=share)
    assert taus.tau_g is not None
    more = factor * (1 + TAU_MARGIN)
    acceptance = 2 * float(ndtr(-(in_test + of_gradients) / sqrt(affordable) / 2))
    return Plan(
        step_size=length / num_leapfrog,
        num_leapfrog=num_leapfrog,
        mass=facts.precision,
        gradient_bound=bounds[0],
        ratio_bound=bounds[1],
        tau_g=more * taus.tau_g,
        tau_l=more * taus.tau_l,
        num_iterations=num_iterations,
        acceptance_rate=acceptance,
        mode=facts.mode,
        unravel=pilot.unravel,
        assumptions=describe(source, num_records / pilot.num_records, budget, num_chains, length, *fractions),
    )


def choose_bounds(facts: Pilot, clipped_gradients: float, clipped_ratios: float) -> tuple[float, float]:
    """b_g and b_l as quantiles of the pilot's contributions."""
    gradient_bound = float(np.quantile(facts.gradient_norms, 1 - clipped_gradients))
    return gradient_bound, float(np.quantile(facts.ratio_slopes, 1 - clipped_ratios))


def unit_variances(facts: Pilot, gradient_bound: float, ratio_bound: float) -> Callable[[float], tuple[float, float]]:
    """From a trajectory's length to the variances of the noise in the test and of its gradients' kicks, for μ = k."""
    spread = float(np.trace(np.linalg.inv(facts.precision)))

    def variances(length: float) -> tuple[float, float]:
        moved = 2 * (1 - cos(length)) * spread
        return 2 * ratio_bound**2 * moved, 2 * gradient_bound**2 * length**2 * spread

    return variances


def choose_length(variances: Callable[[float], tuple[float, float]], affordable: float) -> float:
    """The length at which the noise in the energy is as strong as it should be, at most `LONGEST`."""

    def excess(length: float) -> float:
        in_test, of_gradients = variances(length)
        return (sqrt(in_test) + sqrt(of_gradients)) ** 2 / affordable - ENERGY_VARIANCE

    return LONGEST if excess(LONGEST) <= 0 else float(brentq(excess, SHORTEST * LONGEST, LONGEST))


def describe(
    source: Source,
    ratio: float,
    budget: Budget,
    num_chains: int,
    length: float,
    clipped_gradients: float,
    clipped_ratios: float,
) -> tuple[str, ...]:
    """What a plan assumed, in words; `ratio` is n over the number of the pilot's records."""
    return (
        f"the pilot's records are {source}, as stated: nothing was computed from confidential ones",
        f"there are {ratio:.3g} times as many confidential records, and their number is no secret",
        f"they scatter like the pilot's, of which {clipped_gradients:.0%} of the gradients and {clipped_ratios:.0%} of"
        " the log-likelihood ratios would be clipped; if more ratios are clipped, the draws are biased",
        "the posterior is close to a normal law of the precision found at the pilot's mode, and chains that start there"
        f" are about {sqrt(1 + ratio):.2g} posterior deviations from its centre even if the pilot has the same law",
        f"moves have length {length:.3g} on its scale, so that a chain forgets its place in about"
        f" {ceil((LONGEST / length) ** 2)} accepted iterations",
        f"the whole budget {budget} goes to {num_chains} chains: nothing is left for a second run",
    )


def check_arguments(key: Key, source: object, budget: object, clipped_gradients: float, clipped_ratios: float) -> None:
    """Raise unless the source is named, the budget is one, and the fractions are fractions."""
    check_key("key", key)
    if source not in ("public", "synthetic"):
        remedy = "Say where the pilot's records come from; confidential ones must not be used."
        fail("source", repr(source), "'public' or 'synthetic'", remedy)
    if not isinstance(budget, Budget):
        fail("budget", type(budget).__name__, "a dpjax.private.Budget", "State ε, δ and neighbours.", error=TypeError)
    for name, fraction in (("clipped_gradients", clipped_gradients), ("clipped_ratios", clipped_ratios)):
        if not 0 <= fraction < 1:
            fail(name, fraction, "a fraction in [0, 1)", "Pass the part of the pilot's records that may be clipped.")
