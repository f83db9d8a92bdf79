"""Input checks of `sample_clt` before compilation, and the choice of the source of moments."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.validation import Obstacle, check_count, fail, name_of
from dpjax.base import Model
from dpjax.clt.density import obstacle_of_noise
from dpjax.clt.latent import SCALES, SUMS
from dpjax.clt.moments import Source
from dpjax.data_augmentation.records.unknown_number import check_model_of_any_number
from dpjax.domain import LARGEST_DOMAIN
from dpjax.models.checks import check_fit
from dpjax.models.positions import check_derived
from dpjax.models.record_noise import has_scores
from dpjax.models.simulation import parameter_shapes, position_shapes
from dpjax.release.base import PrivateRelease, is_release
from dpjax.release.summed import as_sum, obstacle_to_one_sum
from dpjax.release.unknown_count import is_unknown
from dpjax.runtime.run import check_run

__all__ = ["check_inputs", "check_problem", "default_points", "find_source", "obstacle_to_clt"]

NO_SUM = "One value for each record is no sum: use dpjax.sample."

DEFAULT_POINTS, DEFAULT_OF_COVARIANCE = 1_024, 216
"""Points of quadrature for all moments, and where the mean is known."""


def check_inputs(
    key: Any, model: Any, release: Any, counts: tuple[Any, Any, Any], num_points: Any, progress: Any
) -> Source:
    """The source of the moments, or an error unless the arguments are compatible.

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
    return check_problem(model, release, num_points, may_be_unknown=True)


def check_problem(model: Any, release: Any, num_points: int | None = None, *, may_be_unknown: bool = False) -> Source:
    """The source of the moments, or an error unless the value is a sum over records plus noise.

    Parameters
    ----------
    num_points
        Those of the quadrature, if not the default.
    may_be_unknown
        Whether the number of records may be unknown.

    Raises
    ------
    TypeError, ValueError
        If it is not, if model and release are not compatible, or if there is no source of moments.
    """
    is_open = may_be_unknown and is_release(release) and is_unknown(release)
    if is_release(release) and not is_open:
        as_sum(release, NO_SUM)
    check_fit(model, release)
    if is_open:
        check_model_of_any_number(model)
    check_derived(model)
    found = source_or_obstacle(model, release, num_points)
    return found.refuse() if isinstance(found, Obstacle) else found


def obstacle_to_clt(model: Model, release: PrivateRelease) -> Obstacle | None:
    """Why the sum that is released cannot be taken to be Normal, for a model that fits the release."""
    found = obstacle_to_one_sum(release, NO_SUM) or source_or_obstacle(model, release)
    return found if isinstance(found, Obstacle) else None


def source_or_obstacle(model: Model, release: Any, num_points: int | None = None) -> Source | Obstacle:
    """The source of the moments, or what is in the way of a sum that is taken to be Normal."""
    if not release.is_noisy_sum:
        given = f"values drawn by {name_of(release.mechanism)}"
        return Obstacle("release", given, "the sum of a statistic plus noise", "Use dpjax.sample.", TypeError)
    if obstacle := obstacle_of_noise(release.mechanism, release.value.size):
        return obstacle
    shapes = parameter_shapes(model)
    if taken := sorted({SCALES, SUMS} & (shapes.keys() | jax.eval_shape(model.derived, shapes).keys())):
        remedy = "Latent noise is held under them: rename yours, or impute the records."
        return Obstacle("model", f"names {taken}", "other names", remedy)
    if not shapes:
        given = "a model without parameters"
        return Obstacle("model", given, "parameters to draw", "Give one of its numbers a prior.")
    source = source_of(model, release)
    if source is None:
        return obstacle_of_moments(model)
    return obstacle_of_size(model, source, num_points or default_points(source)) or source


def default_points(source: Source) -> int:
    """The number of points: the mean has to be known √n times better than the covariance."""
    return DEFAULT_OF_COVARIANCE if source.declared[0] else DEFAULT_POINTS


def obstacle_of_size(model: Model, source: Source, num_points: int) -> Obstacle | None:
    """Too many records to sum over, of all levels of discrete fields at each point."""
    if source.points != "mixed" or num_points * model.domain.size <= LARGEST_DOMAIN:
        return None
    given = f"{num_points} points, each with all {model.domain.size} combinations of the discrete fields"
    remedy = "Pass fewer points, whose error is measured; or use dpjax.sample."
    return Obstacle("num_points", given, f"at most {LARGEST_DOMAIN} records in all", remedy)


def find_source(model: Model, release: Any) -> Source:
    """The source of the moments, or an error if there is none."""
    return source_of(model, release) or obstacle_of_moments(model).refuse()


def source_of(model: Model, release: Any) -> Source | None:
    """The source of the moments, if there is one."""
    declared = declared_moments(model, release)
    if all(declared):
        return Source(declared, None)
    points = find_points(model)
    return None if points is None else Source(declared, points)


def declared_moments(model: Model, release: Any) -> tuple[bool, bool]:
    """Whether the model gives mean and covariance of the statistic; an error if they have the wrong shape."""
    found = jax.eval_shape(partial(model.statistic_moments, statistic=release.statistic), parameter_shapes(model))
    if found is None:
        return False, False
    size = release.value.size
    shapes = [getattr(part, "shape", None) for part in found] if isinstance(found, tuple) else []
    if shapes not in ([(size,), (size, size)], [(size,), None]):
        given = f"{found} for a statistic of {size} numbers"
        fail("Model.statistic_moments", given, f"shapes [{size}] and [{size}, {size}]", "Or return None.")
    return True, shapes[1] is not None


def find_points(model: Model) -> str | None:
    """The points over which records' contributions can be summed, or None."""
    if model.domain.is_finite:
        return "support"
    if model.count_field is not None:
        return "counts"
    if model.has("mixed"):
        return "mixed"
    return "scores" if has_scores(model) and not drawn_whole_fields(model) else None


def drawn_whole_fields(model: Model) -> list[str]:
    """The fields of whole numbers, whose contributions are not smooth in the parameters and the noise."""
    records = position_shapes(model, model.num_records or 1).records
    leaves = {name: jax.tree.leaves(field) for name, field in records.items()}
    return [
        name for name, parts in leaves.items() if any(not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in parts)
    ]


def obstacle_of_moments(model: Model) -> Obstacle:
    """What a model without a source of moments lacks."""
    if has_scores(model):
        whole = drawn_whole_fields(model)
        given = f"a model with whole numbers {whole} beside others, without a bound or of too many kinds to list"
    else:
        given = "a model without a full non-centred form"
        if forms := model.noncentred.forms:
            given += f" ({', '.join(f'{field}: {words}' for field, words in forms)})"
    expected = (
        "Model.statistic_moments, a finite support, one count, a form with Normal scores (NonCentred.scores), or such "
        "a form beside levels that are listed (Model.mixed)"
    )
    return Obstacle("model", given, expected, "Give the model statistic_moments, or use dpjax.sample.")
