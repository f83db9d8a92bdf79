"""What `sample_clt` refuses before anything is compiled, and where it takes the moments from."""

from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from dpjax._util.validation import check_count, fail, name_of
from dpjax.base import Model
from dpjax.clt.density import check_noise
from dpjax.clt.moments import Source
from dpjax.models.checks import check_fit
from dpjax.models.positions import check_derived
from dpjax.models.simulation import parameter_shapes, position_shapes
from dpjax.release.base import is_release
from dpjax.release.summed import as_sum
from dpjax.runtime.loop import check_run

__all__ = ["check_large", "check_problem", "find_source"]


def check_large(
    key: Any, model: Any, release: Any, counts: tuple[Any, Any, Any], num_points: Any, progress: Any
) -> Source:
    """Where the moments come from, if the arguments fit each other.

    Parameters
    ----------
    counts
        The numbers of chains, steps of warm-up and draws.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    check_run(key, *counts, 1, None, progress)
    if num_points is not None:
        check_count("num_points", num_points, "Pass a whole number of at least 8.", least=8)
    return check_problem(model, release)


def check_problem(model: Any, release: Any) -> Source:
    """Where the moments come from, if the value is a sum over a known number of records plus real noise.

    Raises
    ------
    TypeError, ValueError
        If it is not, or model and release do not fit each other, or there are no moments.
    """
    if is_release(release):
        as_sum(release, "One value for each record is no sum: use dpjax.sample.")
    check_fit(model, release)
    check_derived(model)
    if not release.is_noisy_sum:
        given = f"values drawn by {name_of(release.mechanism)}"
        fail("release", given, "the sum of a statistic plus noise", "Use dpjax.sample.", error=TypeError)
    check_noise(release.mechanism, release.value.size)
    if not parameter_shapes(model):
        fail("model", "a model without parameters", "parameters to draw", "Give one of its numbers a prior.")
    return find_source(model, release)


def find_source(model: Model, release: Any) -> Source:
    """Where the moments come from, or an error if there are none."""
    declared = declared_moments(model, release)
    if all(declared):
        return Source(declared, None)
    points = find_points(model)
    return Source(declared, points) if points is not None else refuse(model)


def declared_moments(model: Model, release: Any) -> tuple[bool, bool]:
    """Whether the model knows mean and covariance of the statistic, or an error if they have not the value's size."""
    if model.statistic_moments is None:
        return False, False
    known = model.statistic_moments
    found = jax.eval_shape(lambda parameters: known(parameters, release.statistic), parameter_shapes(model))
    if found is None:
        return False, False
    size = release.value.size
    shapes = [getattr(part, "shape", None) for part in found] if isinstance(found, tuple) else []
    if shapes not in ([(size,), (size, size)], [(size,), None]):
        given = f"{found} for a statistic of {size} numbers"
        fail("Model.statistic_moments", given, f"shapes [{size}] and [{size}, {size}]", "Or return None.")
    return True, shapes[1] is not None


def find_points(model: Model) -> str | None:
    """What records' contributions can be summed over; None where there is nothing."""
    if model.support is not None:
        return "support"
    if model.count_field is not None:
        return "counts"
    form = model.noncentred
    if form is None or form.scores is None or form.log_density is not None:
        return None
    return None if drawn_whole_fields(model) else "scores"


def drawn_whole_fields(model: Model) -> list[str]:
    """The fields of whole numbers, whose contributions are no smooth function of the parameters and the noise."""
    records = position_shapes(model, model.num_records or 1).records
    leaves = {name: jax.tree.leaves(field) for name, field in records.items()}
    return [
        name for name, parts in leaves.items() if any(not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in parts)
    ]


def refuse(model: Model) -> NoReturn:
    """Raise for a model whose records have no law that can be summed over."""
    form = model.noncentred
    if form is not None and form.scores is not None and form.log_density is None:
        given = f"a model with whole numbers {drawn_whole_fields(model)} beside others, or of too many kinds to list"
    else:
        given = "a model without a full non-centred form"
        if form is not None and form.forms:
            given += f" ({', '.join(f'{field}: {words}' for field, words in form.forms)})"
    expected = "Model.statistic_moments, a finite support, one count, or a form with Normal scores (NonCentred.scores)"
    fail("model", given, expected, "Give the model statistic_moments, or use dpjax.sample.")
