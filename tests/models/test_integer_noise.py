"""Integer noise goes with whole statistics only: a sampler would keep for ever the fraction of a real sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import coupling, models, statistics
from dpjax.base import Model
from dpjax.mechanisms import Censored, DiscreteGaussian, DiscreteLaplace, Laplace
from dpjax.models.integer_noise import check_integer_noise
from dpjax.release import LocalRelease, Release

N = 10
NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
FAR = models.normal(mean_prior=models.NormalPrior(50.0, 1.0), variance=1.0)
CATEGORICAL = models.categorical(concentration=np.ones(3))
TOTAL = statistics.total("y", -2, 2)


def model_of(draw):
    """A model of one float field y, whatever its parameter."""

    def sample_prior(key):
        return {"mean": jax.random.normal(key)}

    def log_prior(parameters):
        return -(parameters["mean"] ** 2) / 2

    def sample_records(key, parameters, n):
        return {"y": draw(key, n) + 0 * parameters["mean"]}

    def log_density(parameters, records):
        return jnp.zeros(len(records["y"])) + 0 * parameters["mean"]

    return Model(sample_prior, log_prior, sample_records, log_density)


COUNTS = model_of(lambda key, n: jnp.round(3 * jax.random.normal(key, (n,))))
HALVES = model_of(lambda key, n: jnp.round(3 * jax.random.normal(key, (n,))) + 0.5)
CODED = HALVES._replace(support=lambda: {"y": jnp.array([0.5, 1.5, 2.5])})


def in_a_loop(record):
    return jax.lax.fori_loop(0, 3, lambda index, total: total + record["cell"].astype(float), 0.0)[None]


WHOLE = {
    "cells": (CATEGORICAL, statistics.cells("cell", 3), 3),
    "bins of a real field": (NORMAL, statistics.histogram("y", [-1, 0, 1]), 2),
    "scaled by a whole number": (CATEGORICAL, statistics.scaled(statistics.cells("cell", 3), 2), 3),
    "an integer field within whole clamps": (CATEGORICAL, statistics.total("cell", 0, 2), 1),
    "clamps beyond the support": (CATEGORICAL, statistics.total("cell", -0.5, 2.5), 1),
    "one-hot": (CATEGORICAL, lambda record: jax.nn.one_hot(record["cell"], 3), 3),
    "set by index": (CATEGORICAL, lambda record: jnp.zeros(3).at[record["cell"]].set(1.0), 3),
    "a condition": (NORMAL, lambda record: jnp.where(record["y"] > 0, 1.0, -1.0)[None], 1),
    "a branch": (NORMAL, lambda record: jax.lax.cond(record["y"] > 0, lambda: 1.0, lambda: 0.0)[None], 1),
    "a product of indicators": (
        NORMAL,
        lambda record: ((record["y"] > 0).astype(float) * (record["y"] < 1).astype(float))[None],
        1,
    ),
    "rounded": (NORMAL, lambda record: jnp.round(record["y"])[None], 1),
    "a loop over whole numbers": (CATEGORICAL, in_a_loop, 1),
    "counts held as floats": (COUNTS, statistics.total("y"), 1),
    "a support of halves, doubled": (CODED, lambda record: 2 * record["y"][None], 1),
}
REAL = {
    "a clamped sum": (NORMAL, TOTAL, 1),
    "a clamped sum all of whose draws are at its bound": (FAR, TOTAL, 1),
    "a sum": (NORMAL, statistics.total("y"), 1),
    "shares of counts": (CATEGORICAL, statistics.scaled(statistics.cells("cell", 3), 1 / N), 3),
    "clamps within the support": (CATEGORICAL, statistics.total("cell", 0.5, 2), 1),
    "halves": (HALVES, statistics.total("y"), 1),
    "counts that are shifted": (COUNTS, lambda record: record["y"][None] + 0.5, 1),
    "one real coordinate of two": (NORMAL, lambda record: jnp.stack([record["y"], jnp.round(record["y"])]), 2),
    "a branch with a real side": (
        NORMAL,
        lambda record: jax.lax.cond(record["y"] > 3, lambda y: y, jnp.round, record["y"])[None],
        1,
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_statistics_go_with_integer_noise(name):
    model, statistic, dimension = WHOLE[name]
    check_integer_noise(model, Release(np.zeros(dimension), DiscreteLaplace(1.0), statistic, N))


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(1.0), Censored(DiscreteGaussian(2.0), lower=0)])
@pytest.mark.parametrize("name", REAL)
def test_real_statistics_do_not(name, mechanism):
    model, statistic, dimension = REAL[name]
    with pytest.raises(ValueError, match=r"mechanism: given .*whose noise is whole.*Use Laplace or Gaussian"):
        check_integer_noise(model, Release(np.zeros(dimension), mechanism, statistic, N))


@pytest.mark.parametrize(("last", "whole"), [(2.0, True), (2.5, False)])
def test_large_tables_of_possible_records_are_looked_at_in_parts(last, whole):
    """A division may leave a fraction: only the contributions of all records, 16 million numbers, tell."""
    size = 4_000
    weights = jnp.full(size, 2.0).at[-1].set(last)
    release = Release(
        jnp.zeros(size), DiscreteLaplace(2.0), lambda record: jax.nn.one_hot(record["cell"], size) * weights / 1.0, n=3
    )
    model = models.categorical(np.ones(size))
    if whole:
        check_integer_noise(model, release)
    else:
        with pytest.raises(ValueError, match="mechanism: given"):
            check_integer_noise(model, release)


def test_other_noise_goes_with_any_statistic():
    check_integer_noise(NORMAL, Release([3.0], Laplace(1.0), TOTAL, N))


ENTRIES = {
    "sample": lambda model, release: dpjax.sample(jax.random.key(0), model, release),
    "gibbs": dpjax.gibbs,
    "impute": lambda model, release: dpjax.impute(model, release, {"mean": 0.0}),
    "sample_smc": lambda model, release: dpjax.sample_smc(jax.random.key(0), model, release),
    "importance_sample": lambda model, release: dpjax.importance_sample(jax.random.key(0), model, release, 100),
    "sbc": lambda model, release: dpjax.sbc(jax.random.key(0), model, release),
    "sample_prior_predictive": lambda model, release: dpjax.sample_prior_predictive(jax.random.key(0), model, release),
    "coupled_gibbs": coupling.coupled_gibbs,
}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_sampler_refuses_integer_noise_on_reals(name):
    with pytest.raises(ValueError, match="mechanism: given DiscreteLaplace, whose noise is whole"):
        ENTRIES[name](NORMAL, Release([3.0], DiscreteLaplace(1.0), TOTAL, N))


@pytest.mark.parametrize("name", ["sample", "gibbs", "impute", "importance_sample"])
def test_every_sampler_refuses_integer_noise_on_a_real_field(name):
    with pytest.raises(ValueError, match="channel: given DiscreteGaussian, whose noise is whole, on the field 'y'"):
        ENTRIES[name](NORMAL, LocalRelease(np.arange(10.0), DiscreteGaussian(1.0), "y"))


def test_integer_noise_on_an_integer_field():
    check_integer_noise(CATEGORICAL, LocalRelease(np.arange(10), DiscreteGaussian(1.0), "cell"))


def test_a_mixture_refuses_clamped_integer_noise_on_reals():
    base = dpjax.mixture.NormalInverseGamma(mean=0.0, precision=1.0, shape=3.0, scale=1.0)
    channel = Censored(DiscreteLaplace(1.0), lower=0)
    with pytest.raises(ValueError, match="channel: given Censored on records that are no whole numbers"):
        dpjax.mixture.sample(jax.random.key(0), np.arange(5.0), channel, component=base, concentration=1.0)
