"""The fingerprint of a run: named values by which a checkpoint is refused to any other run."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.pytree import PyTree
from dpjax.base import Key, Model
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.summed_out import Likelihood
from dpjax.mcmc.run import PosteriorRun
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_state
from dpjax.release import PrivateRelease
from dpjax.release.unknown_count import is_unknown
from dpjax.runtime.chunk import Segment
from dpjax.runtime.fingerprint import Plain, identify_arrays, identify_parts, identify_run, plain_values


def make_fingerprint(key: Key, run: PosteriorRun, initial: Any) -> dict[str, Plain]:
    """All that decides the draws of a run, under names that a user knows."""
    model, release, plan = run.problem.model, run.problem.release, run.problem.plan
    alone = run.problem.has_own_likelihood
    values = (probe_alone if alone else probe).unoptimized(model, run.problem.swept_release if alone else release)
    return {
        **identify_run(key, len(run.keys.chains), run.schedule[-1]),
        "release": f"{type(release).__name__} of n = {'unknown' if is_unknown(release) else release.n}",
        **{f"plan.{name}": value for name, value in plain_values(plan).items()},
        **identify_parts(dict(functions_and_objects(run))),
        **identify_arrays({"release": release, "initial": initial, "model": model}),
        **identify_arrays({"model": values}, rounded=True),
    }


def asked_of(plan: SweepPlan, sampling: Segment, initial: Any = None) -> dict[str, Plain]:
    """What a run was asked for beside its key, model and release, under names that a user knows.

    Parameters
    ----------
    plan
        Before warm-up has chosen what it leaves open.
    sampling
        The last segment of the run.
    """
    start = initial if initial is None or isinstance(initial, str) else "given"
    return {**plain_values(plan), "num_warmup": sampling.start, "thin": sampling.thin, "initial": start}


def functions_and_objects(run: PosteriorRun) -> Iterator[tuple[str, Any]]:
    """The functions and objects that a run is made of by name; numbers and released values are compared as arrays."""
    release = run.problem.release
    yield from part_paths("model", run.problem.model)
    yield from part_paths("plan", run.problem.plan)
    yield "collect", run.collect
    yield from run.problem.own_functions.items()
    for field in fields(release):
        if field.name not in ("value", "values"):
            yield f"release.{field.name}", getattr(release, field.name)


def part_paths(root: str, noun: Any) -> Iterator[tuple[str, Any]]:
    """The parts of an object by their paths, such as ``model.noncentred.records``; of a `PyTree`, what is static."""
    if isinstance(noun, PyTree):
        yield root, type(noun)
    for name in part_names(noun):
        part = getattr(noun, name)
        yield from part_paths(f"{root}.{name}", part) if is_divided(part) else [(f"{root}.{name}", part)]


def is_divided(part: Any) -> bool:
    """Whether the parts of an object are named."""
    return hasattr(part, "_fields") or isinstance(part, PyTree)


def part_names(noun: Any) -> list[str]:
    """The names of the parts that are compared as objects."""
    if hasattr(noun, "_fields"):
        return list(noun._fields)
    return [field.name for field in fields(noun) if not isinstance(noun, PyTree) or is_static(noun, field)]


def is_static(noun: PyTree, field: Any) -> bool:
    """Whether a field is static, or has static fields of its own."""
    return field.metadata.get("static", False) or isinstance(getattr(noun, field.name), PyTree)


@jit_model
def probe(model: Model, release: PrivateRelease) -> dict[str, Any]:
    """Values of the model's functions and of the statistic at one fixed draw, in place of the functions themselves."""
    parameters, latent = draw_state(jax.random.key(0), model, release)
    return {
        "parameters": parameters,
        "log_prior": model.log_prior(parameters),
        "log_density": jnp.sum(model.log_density(parameters, latent.records)),
        "statistic": latent.statistic,
    }


@jit_model
def probe_alone(model: Model, likelihood: Likelihood) -> dict[str, Any]:
    """Values at one fixed draw likewise, where the likelihood is another than that of the records, of any number."""
    parameters = model.sample_prior(jax.random.key(0))
    return {
        "parameters": parameters,
        "log_prior": model.log_prior(parameters),
        "log_likelihood": likelihood(parameters),
    }
