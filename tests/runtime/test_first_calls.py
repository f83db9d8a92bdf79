"""A first call compiles its chunk once, while starts are found; the same call again, with other numbers, nothing."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax.sampler_tests.invariance_test import choose_size

KEY = jax.random.key(3)
SHORT = {"num_chains": 2, "num_warmup": 8, "num_samples": 8, "progress": False}
DRAWS_ONLY = SHORT | {"num_warmup": 0}
"""Without the end of a warm-up, at which mixtures fit the number of their slots and compile for it."""

MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 3.0), variance=1.0)
COMPONENT = dpjax.mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=3.0, scale=3.0)
TOTAL = dpjax.statistics.total("y", -4.0, 4.0)


def release(value: float) -> dpjax.Release:
    return dpjax.Release([value], dpjax.Laplace(2.0), TOTAL, 40)


def successes(n: int) -> None:
    """Counts that NumPyro draws as weakly typed integers."""
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Binomial(3, share))


def sample_counts(value: float) -> dpjax.Posterior:
    plain = {"imputation": dpjax.imwg(), "interweave": False, "refresh": False}
    with jax.numpy_dtype_promotion("standard"):  # as NumPyro has it
        return dpjax.sample(KEY, dpjax.from_numpyro(successes, ["y"]), release(value), **plain, **SHORT)


CALLS: dict[str, tuple[str, Callable[[float], Any]]] = {
    "sample": ("advance_chains", lambda value: dpjax.sample(KEY, MODEL, release(value), **SHORT)),
    "sample of counts": ("advance_chains", sample_counts),
    "sample_batch": (
        "run_batch",
        lambda value: dpjax.sample_batch(KEY, MODEL, [release(value), release(value + 1)], **SHORT),
    ),
    "sample_clt": ("advance_chains", lambda value: dpjax.sample_clt(KEY, MODEL, release(value), **SHORT)),
    "mixture": (
        "run_chunk",
        lambda value: dpjax.mixture.sample(
            KEY, value + np.linspace(-1.0, 1.0, 8), None, component=COMPONENT, concentration=1.0, **DRAWS_ONLY
        ),
    ),
}


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat", "ignore:Coordinate")
@pytest.mark.parametrize("name", CALLS)
def test_the_program_compiled_ahead_is_the_one_called(compilations, name):
    program, call = CALLS[name]
    jax.clear_caches()
    call(5.0)
    assert compilations.count(f"jit({program})") == 1
    compilations.clear()
    call(6.0)
    assert compilations == []


def test_batches_of_the_invariance_test_have_few_sizes():
    sizes = {number: choose_size(number, 10_000) for number in range(20, 1_001)}
    assert all(number <= size <= 1.25 * number + 2 and size % 2 == 0 for number, size in sizes.items())
    assert len(set(sizes.values())) <= 25
    assert choose_size(250, 200) == 128
    assert choose_size(200, 200) == 200
