"""Bad input of maximum likelihood, its intervals and its tests: an error before anything is compiled."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Laplace, Release, models, statistics
from dpjax.likelihood.ratio_test import differences

KEY = jax.random.key(0)
MODEL = models.normal(models.NormalPrior(0.0, 1.0), 1.0)
TOTAL = statistics.total("y", -2, 2)
RELEASE = Release([3.0], Laplace(1.0), TOTAL, 10)
UNKNOWN = Release([3.0], Laplace(1.0), TOTAL, dpjax.UnknownCount(dpjax.release.unknown_count.UniformCount(1, 20)))
CELLS = models.categorical(np.ones(3))
STAIRS = Release([3.0], dpjax.Staircase(sensitivity=1.0, epsilon=1.0), TOTAL, 10)
LOCAL = dpjax.LocalRelease([0, 1, 2], dpjax.RandomizedResponse(0.9, 3))
FIXED = MODEL._replace(
    sample_prior=lambda key: {},
    log_prior=lambda parameters: jnp.zeros(()),
    sample_records=lambda key, parameters, n: {"y": jax.random.normal(key, (n,))},
    log_density=lambda parameters, records: -(records["y"] ** 2) / 2,
    **dict.fromkeys(("update", "noncentred", "update_log_density", "summarize", "log_likelihood", "normal_field")),
    **dict.fromkeys(("statistic_moments", "unconstrain", "constrain", "log_jacobian")),
)


def fitted(**changes):
    arguments = {"key": KEY, "model": MODEL, "release": RELEASE, "progress": False}
    return lambda: dpjax.maximum_likelihood(**(arguments | changes))


CASES = {
    "a seed": (fitted(key=3), "key"),
    "several keys": (fitted(key=jax.random.split(KEY)), "key"),
    "no model": (fitted(model=None), "model"),
    "model and release exchanged": (fitted(model=RELEASE, release=MODEL), "release"),
    "no release": (fitted(release=[3.0]), "release"),
    "records of another model": (fitted(model=CELLS), "record"),
    "an unknown number of records": (fitted(release=UNKNOWN), "release.n"),
    "nothing to estimate": (fitted(model=FIXED), "model"),
    "another method": (fitted(method="em"), "method"),
    "an imputation as a method": (fitted(method=dpjax.imwg()), "method"),
    "few chains": (fitted(num_chains=4), "num_chains"),
    "half a chain": (fitted(num_chains=16.5), "num_chains"),
    "no steps": (fitted(num_steps=0), "num_steps"),
    "steps in text": (fitted(num_steps="100"), "num_steps"),
    "no precision": (fitted(precision=0.0), "precision"),
    "a precision that is not finite": (fitted(precision=np.nan), "precision"),
    "progress as a number": (fitted(progress=1), "progress"),
    "a start of another name": (fitted(initial={"centre": 0.0}), "initial"),
    "a start for each chain": (fitted(initial={"mean": np.zeros(32)}), "initial"),
    "a start that is not finite": (fitted(initial={"mean": np.inf}), "initial"),
    "an imputation not called": (fitted(imputation=dpjax.imwg), "imputation"),
    "an open imputation": (fitted(imputation=dpjax.soma("auto")), "imputation"),
    "counts of continuous records": (fitted(imputation=dpjax.counts(4)), "imputation"),
    "an imputation beside clt": (fitted(method="clt", imputation=dpjax.imwg()), "imputation"),
    "clt of local values": (fitted(model=CELLS, release=LOCAL, method="clt"), "release"),
    "clt with other noise": (fitted(release=STAIRS, method="clt"), "release"),
    "a test of no fit": (lambda: dpjax.likelihood_ratio_test(MODEL, MODEL), "full"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_by_name(refused, case):
    refused(*CASES[case])


def test_nothing_is_compiled(refused, compilations):
    for call, argument in CASES.values():
        refused(call, argument)
    assert not [name for name in compilations if name in ("average_chains", "search", "differentiate")]


@pytest.fixture(scope="module")
def fit():
    release = Release([300.0], dpjax.Gaussian(10.0), TOTAL, 1_000)
    return dpjax.maximum_likelihood(KEY, MODEL, release, method="clt", progress=False)


@pytest.mark.x64
def test_bad_intervals(refused, fit):
    refused(lambda: fit.confidence_interval(95), "level")
    refused(lambda: fit.confidence_interval(0.9, "score"), "method")
    refused(lambda: fit.confidence_interval(0.9, "bootstrap", num_refits=5), "num_refits")


def test_bad_pairs_of_fits(refused, fit):
    refused(lambda: dpjax.likelihood_ratio_test(fit, fit), "restricted")
    other = dpjax.maximum_likelihood(
        KEY, MODEL, Release([200.0], dpjax.Gaussian(10.0), TOTAL, 1_000), method="clt", progress=False
    )
    refused(lambda: dpjax.likelihood_ratio_test(fit, other), "restricted")


OTHERS = {
    "value": {"value": [200.0]},
    "mechanism": {"mechanism": dpjax.Gaussian(80.0)},
    "kind of noise": {"mechanism": dpjax.Laplace(10.0)},
    "statistic": {"statistic": statistics.total("y", -1.0, 1.0)},
    "n": {"n": 900},
}


@pytest.mark.parametrize("what", OTHERS)
def test_fits_to_releases_that_differ_in_one_part_are_no_pair(fit, what):
    release = replace(fit.fitted.release, **OTHERS[what])
    other = replace(fit, fitted=replace(fit.fitted, release=release))
    named = "mechanism" if what == "kind of noise" else what
    with pytest.raises(ValueError, match=f"restricted: given a fit to another release, which differs in {named};"):
        dpjax.likelihood_ratio_test(fit, other)


def summed(bound: float):
    return lambda record: jnp.clip(record["y"], -bound, bound)[None]


def test_releases_that_were_written_twice_are_the_same():
    def release(scale: float, bound: float) -> Release:
        return Release([3.0], dpjax.Gaussian(scale), summed(bound), 10)

    assert not differences(release(8.0, 2.0), release(8, 2.0))
    assert differences(release(8.0, 2.0), release(8.0, 3.0)) == ["statistic"]


def test_no_bootstrap_of_known_totals(refused):
    known = dpjax.joint(
        Release([4.0, 9.0, 2.0], dpjax.DiscreteLaplace(1.5), statistics.cells("cell", 3), 15),
        Release([4.0], dpjax.Exact(), statistics.total("cell", 0, 2), 15),
    )
    refused(lambda: dpjax.likelihood.intervals.check_resampling(known), "method")
