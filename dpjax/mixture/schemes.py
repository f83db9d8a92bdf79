"""Which sampler draws, with which options: what is refused, and how its sweeps are made."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from dpjax.mixture.base import MixtureState
from dpjax.mixture.binned import Binned
from dpjax.mixture.chunks import Sweep
from dpjax.mixture.inputs import check_options
from dpjax.mixture.run import MAX_CAPACITY
from dpjax.mixture.samplers.conditional import Problem, Scheme, start_state, sweep
from dpjax.mixture.samplers.marginal import LEFT_OUT, start_marginal, sweep_marginal
from dpjax.mixture.samplers.relabelled import MarginalScheme
from dpjax.mixture.samplers.split_merge import sweep_split_merge
from dpjax.models import GammaPrior
from dpjax.validation import check_count, fail

__all__ = ["SAMPLERS", "add_split_merge", "choose_scheme", "functions_of"]

FIRST_CAPACITY = 32
"""The fewest slots to begin with; the run finds out how many are needed."""

SAMPLERS = ("conditional", "neal2", "neal3", "neal5", "neal8")

AUXILIARIES = {"neal5": 1, "neal8": 3}
"""The samplers that have auxiliaries, and how many by default."""

Start = Callable[..., MixtureState]


def functions_of(scheme: Scheme | MarginalScheme) -> tuple[Start, Sweep]:
    """How a chain of the scheme starts, given ``(problem, scheme, key, labels, records)``, and how it moves."""
    marginal = isinstance(scheme, MarginalScheme)
    start: Start = start_marginal if marginal else start_state
    if scheme.split_merge > 0:
        return start, sweep_split_merge
    return start, sweep_marginal if marginal else sweep


def choose_scheme(
    problem: Problem,
    sampler: Any,
    weights: Any,
    truncation: Any,
    offers: Any,
    auxiliaries: Any,
    redraw: Any,
) -> Scheme | MarginalScheme:
    """How a sweep is made.

    Raises
    ------
    TypeError, ValueError
        If the sampler is unknown or does not go with the problem, or an option does not go with the sampler.
    """
    if sampler not in SAMPLERS:
        fail("sampler", repr(sampler), f"one of {list(SAMPLERS)}", "Name the sampler.")
    if not isinstance(redraw, bool):
        fail("redraw", repr(redraw), "True or False", "Say whether auxiliary records are drawn anew.", error=TypeError)
    if sampler == "conditional":
        refuse_options(sampler, "neal5", {"redraw": not redraw})
        refuse_options(sampler, "neal5", {"auxiliaries": auxiliaries is not None})
        return conditional_scheme(problem, weights, truncation, offers)
    given = {"weights": weights != "posterior", "truncation": truncation is not None, "offers": offers is not None}
    refuse_options(sampler, "conditional", given)
    refuse_options(sampler, "neal5", {"redraw": sampler != "neal5" and not redraw})
    return marginal_scheme(problem, sampler, auxiliaries, redraw)


def add_split_merge(
    problem: Problem, scheme: Scheme | MarginalScheme, split_merge: Any, launch_scans: Any
) -> Scheme | MarginalScheme:
    """The scheme with split-merge proposals before each sweep.

    Raises
    ------
    TypeError, ValueError
        If a number is unusable, or such moves do not go with the scheme or the problem.
    """
    check_count("split_merge", split_merge, "Pass how many proposals a sweep begins with, or 0.", least=0)
    check_count("launch_scans", launch_scans, "Pass how many scans prepare a proposal, or 0.", least=0)
    if split_merge == 0:
        return scheme
    given, expected = f"{split_merge}", "0"
    if isinstance(scheme, Scheme) and scheme.weights != "posterior":
        remedy = "Use weights='posterior' without truncation: other weights know an order of the clusters."
        fail("split_merge", f"{given} with weights in an order", expected, remedy)
    if isinstance(scheme, MarginalScheme) and scheme.num_held > 1:
        fail("split_merge", f"{given} with redraw=False", expected, "Use redraw=True.")
    if not hasattr(problem.component, "log_evidence"):
        remedy = "It needs a conjugate base measure with log_evidence(counts, totals)."
        fail("split_merge", f"{given} with {type(problem.component).__name__}", expected, remedy)
    if problem.values.shape[0] < 2:
        fail("split_merge", f"{given} with one record", expected, "One record has no other to share a cluster with.")
    return scheme._replace(split_merge=split_merge, launch_scans=launch_scans)


def refuse_options(sampler: str, owner: str, given: dict[str, bool]) -> None:
    """Raise if an option was given that only another sampler has."""
    for name, there in given.items():
        if there:
            fail(name, "a choice of it", f"none with sampler={sampler!r}", f"Leave it out, or use sampler={owner!r}.")


def conditional_scheme(problem: Problem, weights: Any, truncation: Any, offers: Any) -> Scheme:
    """The sweep of the conditional sampler."""
    check_options(weights, truncation, offers, problem)
    if offers is None:
        offers = 0 if problem.channel is None or problem.tractable is not None else 1
    check_single("offers", offers, problem)
    if truncation is not None:
        return Scheme("blocked", truncation, offers, on_cpu())
    return Scheme(weights, FIRST_CAPACITY, offers, on_cpu())


def marginal_scheme(problem: Problem, sampler: str, auxiliaries: Any, redraw: bool) -> MarginalScheme:
    """The sweep of a marginal sampler."""
    if auxiliaries is None:
        auxiliaries = AUXILIARIES.get(sampler, 1)
    elif sampler not in AUXILIARIES:
        refuse_options(sampler, "neal5", {"auxiliaries": True})
    check_count("auxiliaries", auxiliaries, "Pass how many auxiliary draws each record gets, at least 1.", least=1)
    if sampler == "neal5":
        check_channel(problem)
        check_single("auxiliaries", auxiliaries, problem)
    elif sampler == "neal8":
        check_known_marginal(problem)
    else:
        check_conjugate(problem, sampler)
    return MarginalScheme(sampler, first_capacity(problem), auxiliaries, redraw, on_cpu())


def first_capacity(problem: Problem) -> int:
    """Slots for the clusters expected of the prior and for all but a thousandth of the weight of other atoms."""
    prior = problem.concentration
    mean = np.asarray(prior.shape) / np.asarray(prior.rate) if isinstance(prior, GammaPrior) else prior
    alpha, n = float(np.mean(np.asarray(mean))), problem.n
    needed = alpha * (np.log1p(n / alpha) - np.log(LEFT_OUT)) + 3 * np.sqrt(7 * alpha)
    return int(min(max(FIRST_CAPACITY, 8 * np.ceil(needed / 8)), MAX_CAPACITY))


def check_channel(problem: Problem) -> None:
    """Raise unless there are records to guess at."""
    if problem.channel is None:
        remedy = "Use sampler='neal8'; it needs no auxiliary records."
        fail("sampler", "'neal5' with a density that is known", "records behind a channel", remedy)


def check_single(name: str, number: int, problem: Problem) -> None:
    """Raise unless records that one release tells of get one offer each."""
    if isinstance(problem.channel, Binned) and number != 1:
        fail(name, number, "1 where one release tells of all records", "Leave it out: records decide one by one.")


def check_known_marginal(problem: Problem) -> None:
    """Raise unless the density of a released value given parameters is known."""
    if isinstance(problem.channel, Binned):
        fail("sampler", "'neal8' with one release of all records", "'conditional' or 'neal5'", "Name one of these.")
    if problem.channel is not None and problem.tractable is None:
        pair = f"{type(problem.channel).__name__} and {type(problem.component).__name__}"
        remedy = "Use sampler='neal5' or 'conditional', or register it with dpjax.mixture.register_tractable."
        fail("sampler", f"'neal8' with {pair}", "a channel and kernel whose marginal is known", remedy)


def check_conjugate(problem: Problem, sampler: str) -> None:
    """Raise unless the parameters can be integrated out of the density of a cluster's released values."""
    if isinstance(problem.channel, Binned):
        given = f"{sampler!r} with one release of all records"
        fail("sampler", given, "'conditional' or 'neal5'", "Name one of these.")
    if problem.channel is not None or not hasattr(problem.component, "log_evidence"):
        behind = "no channel" if problem.channel is None else type(problem.channel).__name__
        other = "neal8" if problem.channel is None or problem.tractable is not None else "neal5"
        remedy = (
            f"Use sampler={other!r}; or, behind dpjax.Gaussian, base=dpjax.mixture.TruncatedNormalInverseGamma(...), "
            "which is another prior; or a kernel of the released values that has log_evidence, without a channel."
        )
        given = f"{sampler!r} with {behind} and {type(problem.component).__name__}"
        fail("sampler", given, "a base measure conjugate to the released values", remedy)


def on_cpu() -> bool:
    """Whether chains are advanced in turn."""
    return jax.default_backend() == "cpu"
