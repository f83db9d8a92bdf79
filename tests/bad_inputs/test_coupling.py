"""Bad parts of coupled chains and exchangeable densities, and of what is read off meetings and distances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Laplace, LocalRelease, RandomizedResponse, Release, coupling, exchangeable, models, statistics
from dpjax.coupling import Meetings
from dpjax.data_augmentation.refresh import prior_alone

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
MODEL = models.normal(models.NormalPrior(0.0, 1.0), 1.0)
RELEASE = Release([3.0], Laplace(1.0), statistics.total("y", -2, 2), 10)
LOCAL = LocalRelease([0, 1, 2], RandomizedResponse(0.9, 3))
CELLS = models.categorical(np.ones(3))
TABLE = Release([4.0, 9.0, 2.0], dpjax.DiscreteLaplace(1.5), statistics.cells("cell", 3), 15)
KERNEL = coupling.coupled_gibbs(MODEL, RELEASE)
MET = Meetings(np.array([3, 5, 4, 8]), np.ones(4, bool), 1, 100)
CENSORED = Meetings(np.array([3, 100]), np.array([True, False]), 1, 100)
RECORDS = {"y": np.arange(4.0)}
NO_COUNT = {"none": None, "zero": 0, "negative": -1, "a fraction": 2.5, "text": "4", "true": True}


def met(**changes):
    arguments = {"key": KEY, "kernel": KERNEL, "num_pairs": 4, "max_steps": 100} | changes
    return lambda: coupling.meeting_times(**arguments)


def estimated(**changes):
    arguments = {"key": KEY, "kernel": KERNEL, "function": lambda position: position.parameters["mean"]}
    return lambda: coupling.unbiased_estimates(
        **(arguments | {"k": 2, "m": 4, "num_pairs": 4, "max_steps": 100} | changes)
    )


def coupled(model=MODEL, release=RELEASE, **more):
    return lambda: coupling.coupled_gibbs(model, release, **more)


def far(first, second=RECORDS):
    return lambda: coupling.wasserstein(first, second)


def density(records):
    return -jnp.sum(records**2)


def made(**changes):
    arguments = {"log_density": density, "propose": jax.random.normal, "log_proposal": lambda record: -(record**2) / 2}
    return lambda: exchangeable.soma(**(arguments | changes)).init(jnp.zeros(3))


def paired(**changes):
    arguments = {"log_density": density, "propose": jax.random.normal, "log_proposal": lambda record: -(record**2) / 2}
    arguments |= {"sample_start": lambda key: jax.random.normal(key, (3,)), "imputation": dpjax.soma()}
    return lambda: coupling.coupled_exchangeable(**(arguments | changes))


CASES = {
    **{
        f"meetings of {argument} {kind}": (met(**{argument: value}), argument)
        for argument in ("lag", "num_pairs", "max_steps", "batch_size")
        for kind, value in NO_COUNT.items()
    },
    "meetings of a seed": (met(key=3), "key"),
    "meetings of no kernel": (met(kernel=None), "kernel"),
    "meetings of a single kernel": (met(kernel=dpjax.base.SamplingAlgorithm(lambda x: x, lambda x: x)), "kernel"),
    "meetings of fewer steps than the lag": (met(lag=100), "max_steps"),
    "meetings with a bar of text": (met(progress="yes"), "progress"),
    "estimates with a bar of text": (estimated(progress="yes"), "progress"),
    **{
        f"estimates of {argument} {kind}": (estimated(**{argument: value}), argument)
        for argument in ("k", "m")
        for kind, value in NO_COUNT.items()
        if (argument, kind) != ("k", "zero")
    },
    "estimates of an empty window": (estimated(k=5, m=4), "m"),
    "estimates beyond the last step": (estimated(m=101), "max_steps"),
    "estimates of no function": (estimated(function=None), "function"),
    "estimates of a name": (estimated(function="mean"), "function"),
    "estimates of no kernel": (estimated(kernel=MODEL), "kernel"),
    "coupled without a model": (coupled(model=None), "model"),
    "coupled without a release": (coupled(release=3), "release"),
    "coupled local records": (coupled(CELLS, LOCAL), "release"),
    "coupled by pCN": (coupled(imputation=dpjax.pcn(2, 0.5)), "imputation"),
    "coupled by open attempts": (coupled(imputation=dpjax.soma("auto")), "attempts"),
    "coupled by too many attempts": (coupled(imputation=dpjax.soma(11)), "attempts"),
    "coupled relabelled sometimes": (coupled(relabel="sometimes"), "relabel"),
    "coupled relabelled by a number": (coupled(relabel=3), "relabel"),
    "coupled windows relabelled within": (coupled(imputation=dpjax.soma(3), relabel="within"), "relabel"),
    "coupled relabelled records of their own": (
        coupled(model=MODEL._replace(exchangeable=False), imputation=dpjax.imwg()),
        "relabel",
    ),
    "coupled by another coupling": (coupled(parameters="reflection"), "parameters"),
    "coupled without an update": (coupled(model=MODEL._replace(update=None), parameters="maximal"), "model"),
    "coupled with half a proposal": (coupled(imputation=dpjax.soma(), proposals=0.5), "proposals"),
    "coupled with fewer proposals than a scan": (coupled(imputation=dpjax.imwg(), proposals=3), "proposals"),
    "coupled with refreshes by name": (coupled(refresh=True), "refresh"),
    "coupled with refreshes of other parameters": (
        coupled(refresh=prior_alone(models.normal(models.NormalPrior(0.0, 1.0), models.InverseGammaPrior(3.0, 2.0)))),
        "refresh",
    ),
    "coupled counts with refreshes": (
        coupled(CELLS, TABLE, imputation=dpjax.counts(3), refresh=prior_alone(MODEL)),
        "refresh",
    ),
    "coupled from a position": (coupled(sample_start=dpjax.data_augmentation.Position({}, {})), ""),
    "coupled from a number": (coupled(sample_start=3), "sample_start"),
    "bounds at a negative time": (lambda: coupling.total_variation_bounds(MET, np.array([0, -1])), "times"),
    "bounds at a missing time": (lambda: coupling.total_variation_bounds(MET, np.array([np.nan])), "times"),
    "bounds at a number": (lambda: coupling.total_variation_bounds(MET, 3), "times"),
    "bounds at no times": (lambda: coupling.total_variation_bounds(MET, None), "times"),
    "bounds at a text": (lambda: coupling.total_variation_bounds(MET, "all"), "times"),
    "bounds of no meetings": (lambda: coupling.total_variation_bounds(MET.times, np.arange(3)), "meetings"),
    "bounds of censored meetings": (lambda: coupling.total_variation_bounds(CENSORED, np.arange(3)), "meetings"),
    "a window of no meetings": (lambda: coupling.suggest_k_m(None), "meetings"),
    "a window of too large a quantile": (lambda: coupling.suggest_k_m(CENSORED, quantile=0.9), "quantile"),
    "a window of a quantile of text": (lambda: coupling.suggest_k_m(MET, quantile="0.9"), "quantile"),
    "a window of a missing quantile": (lambda: coupling.suggest_k_m(MET, quantile=np.nan), "quantile"),
    "a window of two quantiles": (lambda: coupling.suggest_k_m(MET, quantile=[0.1, 0.2]), "quantile"),
    "a window of half a multiple": (lambda: coupling.suggest_k_m(MET, multiple=1.5), "multiple"),
    "a rate of no meetings": (lambda: coupling.convergence_rate(MET.times, RNG), "meetings"),
    "a rate by a seed": (lambda: coupling.convergence_rate(MET, 3), "rng"),
    "a rate by a key": (lambda: coupling.convergence_rate(MET, KEY), "rng"),
    "a rate of no resamples": (lambda: coupling.convergence_rate(MET, RNG, num_bootstrap=0), "num_bootstrap"),
    "a rate of level 95": (lambda: coupling.convergence_rate(MET, RNG, level=95), "level"),
    "a rate of no smallest share": (lambda: coupling.convergence_rate(MET, RNG, smallest=None), "smallest"),
    "a rate of a smallest share of zero": (lambda: coupling.convergence_rate(MET, RNG, smallest=0), "smallest"),
    "a distance of other fields": (far({"x": np.arange(4.0)}), "second"),
    "a distance of more fields": (far({"y": np.arange(4.0), "x": np.arange(4.0)}), "second"),
    "a distance of fields exchanged in width": (
        far({"x": np.zeros((4, 2)), "y": np.zeros(4)}, {"x": np.zeros(4), "y": np.zeros((4, 2))}),
        "second",
    ),
    "a distance of more records": (far({"y": np.arange(5.0)}), "second"),
    "a distance of an array from a dict": (far(np.arange(4.0)), "second"),
    "a distance of missing numbers": (far({"y": np.array([0, 1, 2, np.nan])}), "first"),
    "a distance of infinite numbers": (far(RECORDS, {"y": np.array([0, 1, 2, np.inf])}), "second"),
    "a distance of text": (far({"y": np.array(["a"] * 4)}), "first"),
    "a distance of none": (far(None), "first"),
    "a distance of numbers": (far(3.0), "first"),
    "a distance of no records": (far({"y": np.zeros(0)}), "first"),
    "a distance of ragged fields": (far({"y": np.zeros(4), "x": np.zeros(3)}), "first"),
    "a mean distance of one pair": (lambda: coupling.mean_wasserstein(np.zeros((1, 4)), np.zeros((1, 4))), "first"),
    "a mean distance of unequal pairs": (
        lambda: coupling.mean_wasserstein(np.zeros((2, 4)), np.zeros((3, 4))),
        "second",
    ),
    "a mean distance of other fields": (
        lambda: coupling.mean_wasserstein({"y": np.zeros((2, 4))}, {"x": np.zeros((2, 4))}),
        "second",
    ),
    "a width by a seed": (lambda: coupling.median_width(np.zeros(5), 0), "rng"),
    "a width of one draw": (lambda: coupling.median_width(np.zeros(1), RNG), "draws"),
    "a width of missing draws": (lambda: coupling.median_width(np.full(5, np.nan), RNG), "draws"),
    "a width of no number": (lambda: coupling.median_width(np.zeros(5), RNG, num=1), "num"),
    "a discrepancy of no width": (lambda: coupling.squared_mmd(np.zeros(5), np.zeros(5), None), "width"),
    "a discrepancy of width zero": (lambda: coupling.squared_mmd(np.zeros(5), np.zeros(5), 0.0), "width"),
    "a discrepancy of two widths": (lambda: coupling.squared_mmd(np.zeros(5), np.zeros(5), [1.0, 2.0]), "width"),
    "a discrepancy of two draws": (lambda: coupling.squared_mmd(np.zeros(2), np.zeros(5), 1.0), "first"),
    "a discrepancy of other draws": (lambda: coupling.squared_mmd(np.zeros(5), np.zeros((5, 2)), 1.0), "second"),
    "a maximal coupling of no sampler": (
        lambda: coupling.maximal(KEY, None, jnp.sum, jax.random.normal, jnp.sum, 20.0),
        "sample_p",
    ),
    "a maximal coupling of a number for a density": (
        lambda: coupling.maximal(KEY, jax.random.normal, 1.0, jax.random.normal, jnp.sum, 20.0),
        "log_p",
    ),
    "a maximal coupling of one trial": (
        lambda: coupling.maximal(KEY, jax.random.normal, jnp.sum, jax.random.normal, jnp.sum, 1.0),
        "max_trials",
    ),
    "a maximal coupling of no trials": (
        lambda: coupling.maximal(KEY, jax.random.normal, jnp.sum, jax.random.normal, jnp.sum, None),
        "max_trials",
    ),
    **{
        f"an exchangeable density whose {name} is {kind}": (made(**{name: value}), name)
        for name in ("log_density", "propose", "log_proposal", "statistic")
        for kind, value in {"a number": 3.0, "a class": Release}.items()
    },
    "exchangeable records that are a number": (
        lambda: exchangeable.imwg(density, jax.random.normal, density).init(3.0),
        "records",
    ),
    "exchangeable records that are none": (
        lambda: exchangeable.imwg(density, jax.random.normal, density).init(None),
        "records",
    ),
    "exchangeable records of two lengths": (
        lambda: exchangeable.imwg(density, jax.random.normal, density).init({"x": jnp.zeros(3), "y": jnp.zeros(4)}),
        "records",
    ),
    "exchangeable records of no length": (
        lambda: exchangeable.imwg(density, jax.random.normal, density).init(jnp.zeros(0)),
        "records",
    ),
    "exchangeable records by half an attempt": (made(attempts=0.5), "attempts"),
    "exchangeable records by too many attempts": (
        lambda: exchangeable.soma(density, jax.random.normal, density, attempts=9).step(
            KEY, exchangeable.ExchangeableState(jnp.zeros(3), jnp.zeros(()))
        ),
        "attempts",
    ),
    "exchangeable records by another scan": (
        lambda: exchangeable.imwg(density, jax.random.normal, density, scan="sideways"),
        "scan",
    ),
    "exchangeable pairs from a number": (paired(sample_start=3), "sample_start"),
    "exchangeable pairs by pCN": (paired(imputation=dpjax.pcn(2, 0.5)), "imputation"),
    "exchangeable pairs by nothing": (paired(imputation=None), "imputation"),
    "exchangeable pairs of no proposal": (paired(propose=None), "propose"),
    "exchangeable pairs relabelled by text": (paired(relabel="maybe"), "relabel"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])
