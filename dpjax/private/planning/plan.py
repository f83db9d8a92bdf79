"""Settings of DP-HMC from public information, so that tuning spends no privacy."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments, names_methods
from dpjax._util.validation import check_choice, check_count, check_key, fail
from dpjax.base import Array, Key
from dpjax.private import accounting
from dpjax.private.accounting.composition import check_gaussian
from dpjax.private.accounting.query import Budget
from dpjax.private.arguments import check_real, check_target
from dpjax.private.planning.forecast import (
    Energy,
    Forecast,
    advise,
    check_shape,
    check_worth,
    choose_energy,
    even_dimension,
    forecast,
    list_energies,
)
from dpjax.private.planning.pilot import Pilot, explore
from dpjax.private.targets.target import Target

__all__ = ["Plan", "plan"]

Source = Literal["public", "synthetic"]

LARGEST_STEP = 0.5
"""The largest step size, in standard deviations of the narrowest direction: leapfrog is stable below 2 of them."""
GAIN = 1.1
"""How many times as many draws another scale than the parameters' own must give to be chosen."""
TAU_MARGIN = 1e-4
"""The relative surplus of noise that accounts for rounding to a grid; see `Noise.query`."""


@names_methods
@dataclass(frozen=True, eq=False)
class Plan:
    """Settings for `dp_hmc`, made without the confidential records.

    Attributes
    ----------
    step_size
        η.
    num_leapfrog
        L.
    mass
        M [d, d], the posterior precision that the pilot predicts, on the scale below.
    scale
        S [d, d], or None for the parameters' own scale: that on which the budget gives more draws.
    gradient_bound
        b_g.
    ratio_bound
        b_l.
    tau_g
        τ_g, which with τ_l is such that `num_iterations` of each chain spend the budget.
    tau_l
        τ_l.
    num_iterations
        Iterations of each chain.
    acceptance_rate
        The predicted acceptance rate at the average size of a move, leaving out clipping and discretization error.
    effective_draws
        The predicted effective sample size over all chains, after the first `num_warmup` iterations of each.
    num_warmup
        Iterations in which a chain moves from its start to the posterior.
    mode : [d]
        The posterior mode that the pilot predicts; chains start around it.
    unravel
        From a vector [d] to the parameters.
    assumptions
        What the predictions assume, in words.

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
    >>> settings = private.plan(
    ...     jax.random.key(1), target, source="synthetic", num_records=100_000, num_chains=1, num_iterations=1_000,
    ...     budget=private.Budget(8.0, 1e-6, neighbours="replace-one"),
    ... )
    >>> settings.num_iterations, settings.num_leapfrog >= 1, settings.mass.shape
    (1000, True, (1, 1))
    """

    step_size: float
    num_leapfrog: int
    mass: np.ndarray
    scale: np.ndarray | None
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
        names = ("step_size", "num_leapfrog", "mass", "scale", "gradient_bound", "ratio_bound", "tau_g", "tau_l")
        return {name: getattr(self, name) for name in names}

    def starts(self, key: Key, num_chains: int) -> Any:
        """Starting points, leading axis [chains], drawn from the normal approximation of the pilot's posterior."""
        check_key("key", key)
        normals = jax.random.normal(key, (check_count("num_chains", num_chains), len(self.mode)), self.mode.dtype)
        moves = np.asarray(normals) @ np.linalg.inv(np.linalg.cholesky(self.mass))
        vectors = self.mode + (moves if self.scale is None else moves @ self.scale.T)
        return jax.vmap(self.unravel)(jnp.asarray(vectors, self.mode.dtype))

    def __str__(self) -> str:
        return "\n".join(
            [f"{name} = {value}" for name, value in self.settings().items() if name not in ("mass", "scale")]
            + [f"{name} = {getattr(self, name)}" for name in ("num_iterations", "num_warmup")]
            + [f"effective_draws = {self.effective_draws:.3g}"]
            + ["assumes:", *(f"- {line}" for line in self.assumptions)]
        )


class PlannedKernel(NamedTuple):
    """One of the scales on which records can be clipped.

    Attributes
    ----------
    facts
        What the pilot tells on that scale.
    energy
        The bounds to choose there.
    expected
        The efficiency to expect.
    """

    facts: Pilot
    energy: Energy
    expected: Forecast

    @property
    def worth(self) -> float:
        """The effective draws of the best run of one chain."""
        return self.expected.best.effective_draws


@names_arguments
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
        A typed key, for draws from the normal approximation of the pilot's posterior.
    pilot
        The model with records that need no protection: published ones, or ones drawn from the model at plausible
        parameters. **Never the confidential ones**: settings computed from those leak information that nothing accounts
        for. The pilot may be of another size than the confidential data, if it identifies every parameter.
    source
        The origin of the pilot's records, ``"public"`` or ``"synthetic"``; it has no default, so that it is stated.
    num_records
        The number of confidential records under ``"replace-one"``, if it is public. Under ``"add-or-remove"`` it is
        confidential: pass a guess that was made without looking at the records.
    budget
        The privacy budget; the plan spends all of it on this run.
    num_chains
        How many chains share it.
    num_iterations
        How many iterations each makes. More mean more noise in each and shorter moves.
    clipped_ratios
        The largest fraction of the pilot's log-likelihood ratios that may be clipped. The plan clips fewer if this many
        would bias the draws by more than a tenth of a posterior standard deviation. Clipping gradients only lowers the
        acceptance rate, so the plan chooses that bound itself.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, the pilot does not identify the parameters, or the predicted effective sample
        size is below 4.

    Warns
    -----
    UserWarning
        If the predicted effective sample size is below 100, or the pilot's posterior is far from Normal, so that the
        prediction is too high.

    Notes
    -----
    A budget gives a nearly fixed effective sample size: with more iterations each is noisier, and its trajectory must
    be shorter. So one long chain is better than several short ones, each of which is charged for its own warm-up. The
    plan says how many iterations are enough.

    Trajectories are as long as they can be with an energy error of variance 3 from the privacy noise. They are at most
    1.5 on the scale on which the posterior is N(0, I); see `Energy`. The budget's split between gradients and
    acceptance tests, and the clip bound of gradients, are those that allow the longest trajectory.

    Records are clipped, and noise added, either on the parameters' own scale or on that on which the pilot's posterior
    is N(0, I). If that posterior is much narrower in some directions than in others, the latter gives several times as
    many draws.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.2, -0.4, 1.1, 0.3])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> budget = private.Budget(8.0, 1e-6, neighbours="replace-one")
    >>> run = {"num_records": 100_000, "num_chains": 1, "num_iterations": 1_000}
    >>> settings = dpjax.private.plan(jax.random.key(1), target, source="synthetic", budget=budget, **run)
    >>> settings.num_iterations
    1000
    """
    check_arguments(key, pilot, source, budget, clipped_ratios)
    num_chains, num_iterations = check_count("num_chains", num_chains), check_count("num_iterations", num_iterations)
    total = num_chains * num_iterations
    factor = accounting.sensitivity(1.0, budget.neighbours) / 2  # noise of 2 τ b is 2 τ sensitivities of b
    affordable = accounting.largest_mu(budget.epsilon, budget.delta) / factor**2
    ratio = check_count("num_records", num_records) / pilot.num_records

    def consider(facts: Pilot) -> PlannedKernel:
        energies = list_energies(facts, clipped_ratios)
        dimension, distance = even_dimension(facts.precision), sqrt(1 + ratio)
        expected = forecast(energies, affordable, dimension, distance, num_chains, num_iterations)
        return PlannedKernel(facts, choose_energy(energies, affordable / total), expected)

    own, white = map(consider, explore(key, pilot, num_records))
    is_scaled = white.worth > GAIN * own.worth
    facts, energy, expected = white if is_scaled else own
    length = energy.length()
    check_worth(expected, num_chains, num_iterations)
    check_shape(facts.stiffness)
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
        scale=facts.scale if is_scaled else None,
        gradient_bound=energy.gradient_bound,
        ratio_bound=energy.ratio_bound,
        tau_g=more * taus.tau_g,
        tau_l=more * taus.tau_l,
        num_iterations=num_iterations,
        acceptance_rate=2 * float(scipy.special.ndtr(-sqrt(energy.variance(length)) / 2)),
        effective_draws=expected.run.effective_draws,
        num_warmup=expected.run.num_warmup,
        mode=facts.mode,
        unravel=pilot.unravel,
        assumptions=(
            *describe(source, ratio, budget, num_chains, energy, clipped_ratios),
            f"the best single chain gives about {own.worth:.3g} draws with records clipped on the parameters' own"
            f" scale, and {white.worth:.3g} on that on which the pilot's posterior is N(0, I):"
            f" the {'second' if is_scaled else 'first'} is taken",
            *advise(expected),
        ),
    )


def describe(
    source: Source, ratio: float, budget: Budget, num_chains: int, energy: Energy, clipped_ratios: float
) -> tuple[str, ...]:
    """The assumptions of a plan in words; `ratio` is n over the number of the pilot's records."""
    is_public = budget.neighbours == "replace-one"  # under add-or-remove the number itself is protected
    known = "a number that is public" if is_public else "a guess, since their number is confidential"
    return (
        f"the pilot's records are {source}, as stated: nothing was computed from confidential ones",
        f"there are {ratio:.3g} times as many confidential records, {known}",
        f"they have the distribution of the pilot's, of which {energy.clipped:.1%} of the gradients and at most"
        f" {clipped_ratios:.1%} of the log-likelihood ratios are clipped; if more ratios are, the draws are biased",
        "the posterior is close to normal, with the precision at the pilot's mode; chains that start there are about"
        f" {sqrt(1 + ratio):.2g} posterior standard deviations from its mean even if both kinds have one distribution",
        f"trajectories have length {energy.length():.3g}, on the scale on which the posterior is N(0, I)",
        f"the whole budget {budget} goes to {num_chains} chains: nothing is left for a second run",
    )


def check_arguments(key: Key, pilot: object, source: object, budget: object, clipped_ratios: float) -> None:
    """Raise unless pilot, source, budget and fraction are valid."""
    check_key("key", key)
    check_target("pilot", pilot)
    if not pilot.num_records:  # type: ignore[attr-defined]
        fail("pilot", "one without records", "at least one record", "Pass public or synthetic records like the others.")
    remedy = "State where the pilot's records come from; confidential ones must not be used."
    check_choice("source", source, ("public", "synthetic"), remedy)
    if not isinstance(budget, Budget):
        fail("budget", type(budget).__name__, "a dpjax.private.Budget", "State ε, δ and neighbours.", error=TypeError)
    check_gaussian("budget", budget)
    if not 0 <= check_real("clipped_ratios", clipped_ratios) < 1:
        remedy = "Pass the part of the pilot's records that may be clipped."
        fail("clipped_ratios", clipped_ratios, "a fraction in [0, 1)", remedy)
