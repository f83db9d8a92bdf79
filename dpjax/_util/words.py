"""Numbers and models in words."""

from typing import Any

import jax
import numpy as np

__all__ = ["SHOWN", "amount", "describe_model", "quantity"]

SHOWN = 4
"""Numbers that are announced one by one."""


def amount(numbers: Any) -> str:
    """One number, a few, or their range."""
    flat = np.unique(np.asarray(numbers, float))
    if len(flat) == 1:
        return f"{flat[0]:.4g}"
    ordered = np.ravel(np.asarray(numbers, float))
    return ", ".join(f"{one:.4g}" for one in ordered) if len(ordered) <= SHOWN else f"{flat[0]:.4g} to {flat[-1]:.4g}"


def quantity(size: int, thing: str) -> str:
    """A number of things."""
    return f"{size:,} {thing}{'' if size == 1 else 's'}"


def show_shapes(fields: dict[str, Any]) -> str:
    """Names, types and shapes of arrays as text."""
    return ", ".join(f"{name} {leaf.dtype}{list(leaf.shape)}" for name, leaf in fields.items()) or "none"


def describe_model(model: Any) -> str:
    """Parameters, records, how parameters are updated and the non-centred form of a model, one a line."""
    key = jax.eval_shape(jax.random.key, 0)
    parameters = jax.eval_shape(model.sample_prior, key)
    n = model.num_records or 1
    records = jax.eval_shape(lambda key, parameters: model.sample_records(key, parameters, n), key, parameters)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), records)
    is_drawn = model.has("update") or not parameters
    lines = [
        f"parameters: {show_shapes(parameters)}",
        f"records: {show_shapes(one)}; {'any number' if model.num_records is None else model.num_records}, "
        + ("identically distributed" if model.exchangeable else "not identically distributed"),
        "parameters given records: " + ("an exact draw" if is_drawn else "a BlackJAX kernel"),
        "interweaving: " + ("on by default" if model.has("noncentred") else "not possible"),
        *(f"  {field}: {form}" for field, form in model.noncentred.forms),
    ]
    return "\n".join(lines)
