"""Fields of real numbers that were released without noise, but rounded or clamped: their model has the intervals."""

from dataclasses import replace

import jax.numpy as jnp

from dpjax._util.validation import fail
from dpjax.base import Array, Model
from dpjax.data_augmentation.summed_out.totals import IntervalChannel
from dpjax.mechanisms import Exact
from dpjax.models.simulation import position_shapes
from dpjax.models.within import KnownWithin, check_between
from dpjax.release import Microdata, PrivateRelease
from dpjax.release.fields import FieldValues
from dpjax.release.weights import check_unweighted

__all__ = ["check_imputed", "fields_within", "hold_within"]


def fields_within(model: Model, release: PrivateRelease) -> list[str]:
    """The names of the fields of real numbers that are known within intervals, and of nothing else than these."""
    names = {field.field for field in release.fields.values() if field.channel.sums.within}
    records = position_shapes(model, release.n).records if names else {}
    noisy = {
        field.field for field in release.fields.values() if not (field.channel.sums.within or field.channel.sums.known)
    }
    return [name for name in sorted(names - noisy) if jnp.issubdtype(records[name].dtype, jnp.floating)]


def hold_within(model: Model, release: Microdata) -> tuple[Model, Microdata]:
    """The model and the release with such fields as known ones: their intervals belong to the model.

    Counts of which some are withheld beside totals become intervals of one number, which are summed over.

    Raises
    ------
    ValueError
        If their probabilities are not known.
    """
    release = with_open_counts(model, release)
    names = fields_within(model, release)
    if not names:
        return model, release
    ends = {name: ends_of(release, name) for name in names}
    check_between(model, position_shapes(model, release.n).records, ends)
    # A number that stands for an interval is one of its ends.
    known = {
        name: jnp.where(jnp.isfinite(low), low, jnp.nan_to_num(high, posinf=0.0)) for name, (low, high) in ends.items()
    }
    fields = {key: field for key, field in release.fields.items() if field.field not in names}
    fields |= {name: FieldValues(values, Exact(), name) for name, values in known.items()}
    missing = {key: mask for key, mask in release.missing.items() if key in fields and key not in names}
    return KnownWithin(model, ends), replace(release, fields=fields, missing=missing)


def with_open_counts(model: Model, release: Microdata) -> Microdata:
    """The release with exact counts, of which some are missing beside totals, as limits of what they can be."""
    name = model.count_field
    if release.summed is None or name is None or name not in release.exact or name not in release.missing:
        return release
    known = jnp.asarray(release.fields[name].values, float)
    limits = FieldValues(jnp.zeros(release.n), IntervalChannel(known, known), name)
    return replace(release, fields=release.fields | {name: limits})


def ends_of(release: Microdata, name: str) -> tuple[Array, Array]:
    """Between which numbers a field is [n]: all of its parts say so."""
    low, high = jnp.full(release.n, -jnp.inf, float), jnp.full(release.n, jnp.inf, float)
    for key, field in release.fields.items():
        if field.field != name:
            continue
        least, most = (field.values, field.values) if field.channel.sums.known else field.possible_ends()
        is_missing = release.missing.get(key, jnp.zeros(release.n, bool))
        low = jnp.where(is_missing, low, jnp.maximum(low, least))
        high = jnp.where(is_missing, high, jnp.minimum(high, most))
    return low, high


def check_imputed(model: Model, release: PrivateRelease) -> None:
    """Raise if records would be imputed that are weighted, or of which fields are known within intervals.

    A weighted record has no distribution to draw from, and within an interval most proposals are impossible.
    """
    check_unweighted(model, release, "imputation", "one that draws from the distribution of each record")
    names = fields_within(model, release)
    if names:
        given = f"one that imputes the field{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
        remedy = "Use dpjax.sample, or dpjax.marginal_likelihood, without it."
        fail("imputation", f"{given}, known within intervals", "summed_out()", remedy)
