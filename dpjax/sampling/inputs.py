"""Checks of what `sample` is given, before anything is compiled."""

from typing import Any

import jax

from dpjax.base import Key, Model, Parameters
from dpjax.models.positions import check_parameters, check_prior
from dpjax.simulate import parameter_shapes
from dpjax.validation import check_count, check_key, fail

MAX_STEPS = 2**31


def check_run(
    key: Key, num_chains: int, num_warmup: int, num_samples: int, thin: int, collect: Any, progress: Any
) -> None:
    """Raise unless the key, the counts and the function are usable.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    check_key("key", key)
    check_count("num_chains", num_chains)
    check_count("num_warmup", num_warmup, "Pass a whole number; 0 for no warm-up.", least=0)
    check_count("num_samples", num_samples)
    check_count("thin", thin, "Pass 1 to keep every draw.")
    if num_warmup + num_samples * thin >= MAX_STEPS:
        given = f"{num_warmup} + {num_samples} * {thin} steps"
        fail("num_samples", given, f"fewer than {MAX_STEPS} steps in all", "Draw or thin less.")
    if collect is not None and not callable(collect):
        remedy = "Pass a function of a GibbsState, such as lambda state: state.latent.records."
        fail("collect", repr(collect), "a function or None", remedy, error=TypeError)
    if not isinstance(progress, bool):
        fail("progress", repr(progress), "True or False", "Pass False for no bar.", error=TypeError)


def check_initial(model: Model, initial: Any, num_chains: int) -> Parameters | None:
    """The initial parameters [chain, ...] in the types of the model's own; None stays None.

    Raises
    ------
    TypeError, ValueError
        If names, shapes or values do not fit the model.
    """
    if initial is None:
        return None
    parameters = check_parameters("initial", model, initial, (num_chains,))
    check_prior("initial", model, parameters, (num_chains,))
    return parameters


def check_names(model: Model) -> None:
    """Raise if a derived quantity has the name of a parameter."""
    if model.derived is None:
        return
    parameters = parameter_shapes(model)
    both = sorted(set(parameters) & set(jax.eval_shape(model.derived, parameters)))
    if both:
        fail("model.derived", f"names {both}, which are parameters", "names of their own", "Rename them.")
