"""The comparison of a model with itself at one record at a time: rounding passes, another law does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.private.targets.by_record import NUM_TRIALS, ByRecord, Densities, check_by_record


def model(shift: float, *, finite: bool = True) -> ByRecord:
    """A thousand sums of numbers of order 1 that cancel, in another order for one record; `shift` is another law."""

    def draw(key: jax.Array, known: jax.Array) -> tuple:
        return jax.random.normal(key, (1_000,)), {"x": known}

    def likelihood(theta: jax.Array, record: dict, order: slice = slice(None, None, -1)) -> jax.Array:
        total = jnp.sum((theta * record["x"])[order])
        return -50 * total**2 if finite else jnp.asarray(jnp.nan)

    def joint(theta: jax.Array, records: dict) -> Densities:
        densities = jax.vmap(lambda record: likelihood(theta, record, slice(None)))(records)
        return Densities(jnp.sum(theta), densities + shift * jnp.mean(records["x"]))

    return ByRecord(draw, joint, jnp.sum, likelihood)


KNOWN = jnp.asarray(np.random.default_rng(2).normal(size=(NUM_TRIALS, 4, 1_000)))


def test_rounding_passes_and_a_law_of_all_records_does_not() -> None:
    assert check_by_record(model(0.0), KNOWN, "remedy")
    with pytest.raises(ValueError, match=r"a record's density depends .* remedy"):
        check_by_record(model(100.0), KNOWN, "remedy")


def test_without_finite_densities_nothing_is_found_out() -> None:
    assert not check_by_record(model(0.0, finite=False), KNOWN, "remedy")
