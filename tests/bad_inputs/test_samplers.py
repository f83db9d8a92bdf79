"""Bad keys, numbers, parts and starts of everything that samples, and of what is asked of its results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Laplace, LocalRelease, Posterior, RandomizedResponse, Release, models, statistics
from dpjax.data_augmentation import Position
from dpjax.importance import ImportanceSample

KEY = jax.random.key(0)
MODEL = models.normal(models.NormalPrior(0.0, 1.0), 1.0)
CELLS = models.categorical(np.ones(3))
RELEASE = Release([3.0], Laplace(1.0), statistics.total("y", -2, 2), 10)
LOCAL = LocalRelease([0, 1, 2], RandomizedResponse(0.9, 3))
OTHER = Release([3.0], Laplace(1.0), statistics.total("z", -2, 2), 10)
MEAN = {"mean": 0.0}
EQUAL = np.full(3, 1 / 3)
PLAN = dpjax.data_augmentation.SweepPlan(dpjax.imwg(), True, None)
TUNING = dpjax.data_augmentation.Tuning(np.zeros(1), np.eye(1), np.ones(()))
RECORDS = {"y": np.zeros(10)}

NO_KEY = {"none": None, "a seed": 0, "raw": jax.random.key_data(KEY), "two": jax.random.split(KEY), "text": "key"}
NO_COUNT = {"none": None, "zero": 0, "negative": -1, "a fraction": 2.5, "a float": 4.0, "text": "4", "true": True}
NO_MODEL = {"none": None, "a class": dpjax.Model, "a function": jnp.sin, "a release": RELEASE}
NO_RELEASE = {"none": None, "an array": np.zeros(3), "a class": Release, "a model": MODEL, "a mechanism": Laplace(1.0)}
NO_IMPUTATION = {"text": "gibbs", "a number": 3, "a list": [dpjax.imwg()]}
NO_KERNEL = {"unknown": "gibbs", "a number": 3, "a list": ["nuts"], "a class": dpjax.data_augmentation.ParameterKernel}

CALLS = {
    "sample": lambda key=KEY, model=MODEL, release=RELEASE, **more: dpjax.sample(key, model, release, **more),
    "sample_smc": lambda key=KEY, model=MODEL, release=RELEASE, **more: dpjax.sample_smc(key, model, release, **more),
    "sbc": lambda key=KEY, model=MODEL, release=RELEASE, **more: dpjax.sbc(key, model, release, **more),
    "importance_sample": lambda key=KEY, model=MODEL, release=RELEASE, num_samples=100, **more: dpjax.importance_sample(
        key, model, release, num_samples, **more
    ),
    "sample_prior_predictive": lambda key=KEY, model=MODEL, release=RELEASE, num_samples=100: (
        dpjax.sample_prior_predictive(key, model, release, num_samples)
    ),
    "gibbs": lambda model=MODEL, release=RELEASE, **more: dpjax.gibbs(model, release, **more),
    "impute": lambda model=MODEL, release=RELEASE, parameters=MEAN, **more: dpjax.impute(
        model, release, parameters, **more
    ),
}
KEYED = ("sample", "sample_smc", "sbc", "importance_sample", "sample_prior_predictive")
UNTUNED = ("sample_smc", "sbc", "gibbs", "impute")
COUNTS = {
    "sample": ("num_chains", "num_warmup", "num_samples", "thin"),
    "sample_smc": ("num_particles", "num_islands", "num_sweeps"),
    "sbc": ("num_replicates", "num_samples", "thin", "num_warmup"),
    "importance_sample": ("num_samples",),
    "sample_prior_predictive": ("num_samples",),
}


def made(argument, values, names, said=None):
    """Cases of one argument of several functions."""
    return {
        f"{name} of {argument} {kind}": (
            lambda name=name, value=value: CALLS[name](**{argument: value}),
            said or argument,
        )
        for name in names
        for kind, value in values.items()
    }


def started(position, *key):
    return lambda: dpjax.gibbs(MODEL, RELEASE, tuning=TUNING).init(position, *key)


def started_cells(probabilities, cells):
    algorithm = dpjax.gibbs(CELLS, LOCAL, interweave=False)
    return lambda: algorithm.init(Position({"probabilities": probabilities}, {"cell": cells}))


def posterior():
    """A posterior that nothing was drawn for."""
    draws = {"mean": np.zeros((2, 5))}
    info = {"acceptance_rate": np.zeros((2, 5)), "num_nonfinite": np.zeros((2, 5), int)}
    states = dpjax.data_augmentation.GibbsState({"mean": jnp.zeros(2)}, None)
    return Posterior(draws, info, None, False, MODEL, RELEASE, states, TUNING, PLAN)


WEIGHTED = ImportanceSample({"mean": np.zeros(5)}, np.log(np.full(5, 0.2)), 5.0, 0.1, 0.0, 0.1)

CASES = {
    **made("key", NO_KEY, KEYED),
    **made("model", NO_MODEL, CALLS),
    **made("release", NO_RELEASE, CALLS),
    **made("imputation", NO_IMPUTATION, ("sample", "sample_smc", "sbc", "gibbs", "impute")),
    **made("parameter_kernel", NO_KERNEL, ("sample", "gibbs"), said=""),
    **made("interweave", {"text": "yes", "a number": 3}, ("sample", "gibbs")),
    **{
        f"{name} of {argument} {kind}": (
            lambda name=name, argument=argument, value=value: CALLS[name](**{argument: value}),
            argument,
        )
        for name, arguments in COUNTS.items()
        for argument in arguments
        for kind, value in NO_COUNT.items()
        if (argument, kind) != ("num_warmup", "zero") or name != "sample"
    },
    **made("release", {"another field": OTHER}, CALLS, said="record['z']"),
    **made("release", {"a local field": LOCAL}, CALLS, said="field"),
    **{
        f"sample with initial {name}": (lambda value=value: CALLS["sample"](initial=value), "initial")
        for name, value in {
            "parameters of one chain": MEAN,
            "an array": np.zeros(4),
            "another name": {"sd": np.zeros(4)},
            "text": {"mean": ["a"] * 4},
            "a missing number": {"mean": [0.0, np.nan, 0.0, 0.0]},
            "nothing": {},
            "none inside": {"mean": None},
            "a dict inside": {"mean": {}},
        }.items()
    },
    "sample of too many steps": (lambda: CALLS["sample"](num_samples=2**31), "num_samples"),
    "sample that collects text": (lambda: CALLS["sample"](collect="records"), "collect"),
    **made("progress", {"text": "yes", "none": None}, ("sample", "sample_smc", "importance_sample")),
    "sample with a number for a file": (lambda: CALLS["sample"](checkpoint=3), "checkpoint"),
    "sample with a folder for a file": (lambda: CALLS["sample"](checkpoint="/"), "checkpoint"),
    "sample with a file in no folder": (lambda: CALLS["sample"](checkpoint="/no/such/run.npz"), "checkpoint"),
    "sample with a name that no file can have": (lambda: CALLS["sample"](checkpoint="run\0.npz"), "checkpoint"),
    "sample by SOMA of too many attempts": (lambda: CALLS["sample"](imputation=dpjax.soma(11)), "attempts"),
    "sample by pCN of too large blocks": (lambda: CALLS["sample"](imputation=dpjax.pcn(11, 0.5)), "block"),
    "sample by SOMA of local records": (
        lambda: CALLS["sample"](model=CELLS, release=LOCAL, imputation=dpjax.soma()),
        "imputation",
    ),
    "sample by pCN of local records": (
        lambda: CALLS["sample"](model=CELLS, release=LOCAL, imputation=dpjax.pcn()),
        "imputation",
    ),
    "sample interweaving without a form": (
        lambda: CALLS["sample"](model=MODEL._replace(noncentred=None), interweave=True),
        "interweave",
    ),
    "sample of a model that fails": (
        lambda: CALLS["sample"](model=MODEL._replace(log_density=lambda parameters, records: records["x"])),
        "Model.log_density",
    ),
    "sample of a derived quantity named as a parameter": (
        lambda: CALLS["sample"](model=MODEL._replace(derived=lambda parameters: {"mean": jnp.zeros(())})),
        "model.derived",
    ),
    **made("imputation", {"open attempts": dpjax.soma("auto"), "open blocks": dpjax.pcn()}, UNTUNED),
    "gibbs of a tuning that is a number": (lambda: CALLS["gibbs"](tuning=3.0), "tuning"),
    **made(
        "plan",
        {"text": "imwg", "an imputation": dpjax.imwg(), "a class": dpjax.data_augmentation.SweepPlan},
        ("gibbs",),
    ),
    **{
        f"gibbs of a plan and {argument}": (
            lambda choice={argument: value}: CALLS["gibbs"](plan=PLAN, **choice),
            argument,
        )
        for argument, value in {"imputation": dpjax.soma(2), "interweave": False, "parameter_kernel": "nuts"}.items()
    },
    "gibbs of a plan that does not fit": (
        lambda: CALLS["gibbs"](MODEL._replace(noncentred=None), plan=PLAN),
        "interweave",
    ),
    "gibbs of a tuning of another size": (
        lambda: CALLS["gibbs"](tuning=dpjax.data_augmentation.Tuning(jnp.zeros(2), jnp.eye(2), jnp.ones(()))),
        "tuning",
    ),
    **{
        f"a start of {name}": (started(*arguments), said)
        for name, (arguments, said) in {
            "a number": ((3.0,), "position"),
            "none": ((None,), "position"),
            "an array": ((np.zeros(10),), "position"),
            "parameters without a key": ((MEAN,), "rng_key"),
            "parameters with a seed": ((MEAN, 3), "rng_key"),
            "other parameters": (({"sd": 1.0}, KEY), "position"),
            "parameters of two": (({"mean": [0.0, 1.0]}, KEY), "position['mean']"),
            "parameters of text": (({"mean": "0"}, KEY), "position['mean']"),
            "missing parameters": (({"mean": np.nan}, KEY), "position['mean']"),
            "records that are an array": ((Position(MEAN, np.zeros(10)),), "position.records"),
            "records that are none": ((Position(MEAN, None),), "position.records"),
            "records of another field": ((Position(MEAN, {"z": np.zeros(10)}),), "position.records"),
            "too few records": ((Position(MEAN, {"y": np.zeros(9)}),), "position.records['y']"),
            "records of two numbers": ((Position(MEAN, {"y": np.zeros((10, 2))}),), "position.records['y']"),
            "missing records": ((Position(MEAN, {"y": np.full(10, np.nan)}),), "position.records['y']"),
            "records of text": ((Position(MEAN, {"y": ["a"] * 10}),), "position.records['y']"),
            "records of several arrays": ((Position(MEAN, {"y": (np.zeros(10), 0)}),), "position.records['y']"),
            "a pair": (((MEAN, RECORDS),), "position"),
        }.items()
    },
    "a start of fractional cells": (started_cells(EQUAL, [0.5, 1, 2]), "position.records['cell']"),
    "a start of cells beyond the last": (started_cells(EQUAL, [0, 1, 7]), "position.records"),
    "a start outside the prior": (started_cells([-1.0, 1.0, 1.0], [0, 1, 2]), "position"),
    **{
        f"impute at {name}": (lambda value=value: CALLS["impute"](parameters=value), "parameters")
        for name, value in {
            "none": None,
            "an array": np.zeros(1),
            "another name": {"sd": 0.0},
            "two": {"mean": [0.0, 1.0]},
            "text": {"mean": "0"},
            "a missing number": {"mean": np.nan},
        }.items()
    },
    "impute from records that are an array": (lambda: CALLS["impute"]().init(np.zeros(10)), "records"),
    "impute from too few records": (lambda: CALLS["impute"]().init({"y": np.zeros(9)}), "records['y']"),
    "sbc of another model": (lambda: CALLS["sbc"](fit=CELLS), ""),
    "sbc of a number": (lambda: CALLS["sbc"](fit=3), "model"),
    "sbc of few replicates": (lambda: CALLS["sbc"](num_replicates=10), "num_replicates"),
    "sbc of quantities that are text": (lambda: CALLS["sbc"](quantities="mean"), "quantities"),
    "sbc of quantities that are no dict": (
        lambda: CALLS["sbc"](quantities=lambda parameters, records, release: 3.0),
        "quantities",
    ),
    "sbc of quantities that fail": (
        lambda: CALLS["sbc"](quantities=lambda parameters, records, release: {"x": records["x"]}),
        "quantities",
    ),
    "sbc of quantities named as parameters": (
        lambda: CALLS["sbc"](quantities=lambda parameters, records, release: dict(parameters)),
        "quantities",
    ),
    **{
        f"sample_smc of a target {name}": (lambda value=value: CALLS["sample_smc"](target_ess=value), "target_ess")
        for name, value in {"zero": 0.0, "one": 1.0, "text": "0.5", "none": None, "two": [0.5, 0.5]}.items()
    },
    "imwg of another scan": (lambda: dpjax.imwg("backwards"), "scan"),
    "imwg of no scan": (lambda: dpjax.imwg(None), "scan"),
    "imwg of a list": (lambda: dpjax.imwg(["systematic"]), "scan"),
    **{
        f"soma of attempts {name}": (lambda value=value: dpjax.soma(value), "attempts")
        for name, value in NO_COUNT.items()
        if name != "none"
    },
    "soma of attempts in an array": (lambda: dpjax.soma(np.array([3, 4])), "attempts"),
    **{
        f"pcn of blocks {name}": (lambda value=value: dpjax.pcn(value, 0.5), "block")
        for name, value in NO_COUNT.items()
    },
    "pcn of blocks in an array": (lambda: dpjax.pcn(np.array([3, 4]), 0.5), "block"),
    **{
        f"pcn of a correlation {name}": (lambda value=value: dpjax.pcn(2, value), "correlation")
        for name, value in {
            "one": 1.0,
            "negative": -0.1,
            "text": "0.5",
            "none": None,
            "missing": np.nan,
            "two": [0.5, 0.5],
            "an array": np.array([0.5, 0.5]),
        }.items()
    },
    **{
        f"parameter_kernel of {name}": (lambda value=value: dpjax.parameter_kernel(value), "")
        for name, value in {**NO_KERNEL, "none": None}.items()
    },
    **{
        f"initial_tuning of {argument} {kind}": (
            lambda arguments={"key": KEY, "model": MODEL, argument: value}: dpjax.data_augmentation.initial_tuning(
                **arguments
            ),
            argument,
        )
        for argument, values in {"key": NO_KEY, "model": NO_MODEL, "num_samples": NO_COUNT}.items()
        for kind, value in values.items()
    },
    "parameter_kernel of no steps": (lambda: dpjax.parameter_kernel("nuts", 0), "num_steps"),
    "parameter_kernel of an unknown option": (lambda: dpjax.parameter_kernel("nuts", depth=3), ""),
    "parameter_kernel of an acceptance above one": (
        lambda: dpjax.parameter_kernel("nuts", target_acceptance=2.0),
        "target_acceptance",
    ),
    "parameter_kernel of an acceptance of text": (
        lambda: dpjax.parameter_kernel("nuts", target_acceptance="high"),
        "target_acceptance",
    ),
    "parameter_kernel of no width": (lambda: dpjax.parameter_kernel("slice_sampling", width=None), "width"),
    "parameter_kernel of no leapfrogs": (lambda: dpjax.parameter_kernel("hmc", num_leapfrogs=0), "num_leapfrogs"),
    "predict without a key": (lambda: posterior().predict(3), "key"),
    "predict of no draws": (lambda: posterior().predict(KEY, 0), "num_samples"),
    "predict of more draws than there are": (lambda: posterior().predict(KEY, 11), "num_samples"),
    "resample without a key": (lambda: WEIGHTED.resample(None, 3), "key"),
    "resample of a fraction": (lambda: WEIGHTED.resample(KEY, 2.5), "num_samples"),
}


@pytest.mark.x64
@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])
