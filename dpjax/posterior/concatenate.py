"""One result of independent runs, such as those of a job array: their chains side by side."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import jax
import numpy as np

from dpjax._util.pytree import signature
from dpjax._util.validation import fail
from dpjax.runtime.identity import identify

__all__ = ["join_runs"]

OF_RUN = {"quadrature_error": np.maximum.reduce, "skewness": np.maximum.reduce}
"""How reports on a whole run become one; all others have the chains on their first axis."""

AGAIN = "Give every run the same arguments but the key."


def join_runs(runs: Any, kind: type) -> Any:
    """The runs' chains as those of one run, with the model, the release, the plan and the tuning of the first.

    Parameters
    ----------
    runs
        Results of type `kind`, a dataclass with the fields of `dpjax.posterior.Posterior`.

    Raises
    ------
    TypeError, ValueError
        If these are no results, two chains have the same key, or model, release, kernel, or what was kept differ.
    """
    if not isinstance(runs, Sequence) or not runs or not all(isinstance(run, kind) for run in runs):
        remedy = "Pass the results of runs with keys of their own, such as dpjax.sample returns."
        fail("posteriors", name_types(runs), f"a list of dpjax.{kind.__name__}", remedy, error=TypeError)
    check_keys(runs)
    for number, run in enumerate(runs[1:], start=1):
        check_alike(number, run, runs[0])
    return replace(
        runs[0],
        draws=join([dict(run.draws) for run in runs]),
        info={name: join_reports(name, [run.info[name] for run in runs]) for name in runs[0].info},
        collected=join([run.collected for run in runs]),
        interrupted=any(run.interrupted for run in runs),
        final_states=join([run.final_states for run in runs]),
        keys=tuple(key for run in runs for key in run.keys),
        ended="; ".join(dict.fromkeys(run.ended for run in runs if run.ended)),
    )


def name_types(runs: Any) -> str:
    """What was given in place of a list of results."""
    if not isinstance(runs, (list, tuple)):
        return repr(runs)
    return f"a list of {sorted({type(run).__name__ for run in runs})}"


def join(trees: list[Any]) -> Any:
    """Trees of arrays [chain, ...] with the chains of all."""
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *trees)


def join_reports(name: str, reports: list[np.ndarray]) -> np.ndarray:
    """One report of all runs."""
    return np.asarray(OF_RUN[name](reports)) if name in OF_RUN else np.concatenate(reports)


def check_keys(runs: Sequence[Any]) -> None:
    """Raise if two chains have the same key: they are one chain, counted twice."""
    counted = Counter(key for run in runs for key in run.keys)
    again = [number for number, run in enumerate(runs) if any(counted[key] > 1 for key in run.keys)]
    if again:
        expected = "runs of different keys: chains of the same key are the same chain"
        remedy = "Give run i the key jax.random.fold_in(key, i)."
        fail("posteriors", f"runs {again}, which have chains of the same key", expected, remedy)


def check_alike(number: int, run: Any, first: Any) -> None:
    """Raise unless a run is of the same model, release and kernel as the first, and kept as much of each chain."""
    differing = [name for name, one in compared_parts(run, first).items() if one != compared_parts(first, run)[name]]
    if differing:
        fail("posteriors", f"run {number}, which differs from run 0 in {', '.join(differing)}", "runs alike", AGAIN)


def compared_parts(run: Any, other: Any) -> dict[str, Any]:
    """What has to be the same in two runs, by name; what the warm-up chose may differ."""
    plan = run.plan
    kept = {"draws": run.draws, "info": run.info, "collected": run.collected, "final_states": run.final_states}
    same_model, same_release = run.model is other.model, run.release is other.release
    asked = {name: (name in run.settings, run.settings.get(name)) for name in {**run.settings, **other.settings}}
    return {
        "model": None if same_model else identify("model", run.model._replace()),
        "release": None if same_release else identify("release", run.release),
        "plan": plan if plan is None else (kind_of(plan.imputation), plan.interweave, plan.parameter_kernel),
        "approximate": run.approximate,
        **asked,
        **{name: signature(tree, axis=1) for name, tree in kept.items()},
    }


def kind_of(imputation: Any) -> Any:
    """The type of an imputation whose options are compared by name; what a function of the user's own consists of."""
    return type(imputation) if is_dataclass(imputation) else identify("imputation", imputation)
