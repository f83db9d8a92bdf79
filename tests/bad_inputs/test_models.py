"""Bad priors, numbers and shapes of the shipped models, and models whose functions do not fit each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Model, models
from dpjax.base import NonCentred
from dpjax.models import GammaPrior, InverseGammaPrior, NormalInverseGammaPrior, NormalInverseWishartPrior, NormalPrior

MEAN = NormalPrior(0.0, 1.0)
EYE = np.eye(2)
NO_POSITIVE = {
    "none": None,
    "zero": 0.0,
    "negative": -1.0,
    "missing": np.nan,
    "text": "1",
    "a dict": {},
    "a class": int,
}
NO_PRIOR = {
    "none": None,
    "text": "normal",
    "a class": NormalPrior,
    "another prior": NormalInverseGammaPrior(0, 1, 1, 1),
}
BASE = Model(
    sample_prior=lambda key: {"mean": jax.random.normal(key)},
    log_prior=lambda parameters: -(parameters["mean"] ** 2) / 2,
    sample_records=lambda key, parameters, n: {"y": parameters["mean"] + jax.random.normal(key, (n,))},
    log_density=lambda parameters, records: -((records["y"] - parameters["mean"]) ** 2) / 2,
)


def regression(**changes):
    arguments = {"covariate_mean": [0.0, 1.0], "covariate_cov": EYE, "coef_prior": MEAN, "noise_variance": 1.0}
    return lambda: models.linear_regression(**(arguments | changes))


def checked(**changes):
    return lambda: models.check_model(BASE._replace(**changes))


CASES = {
    **{
        f"{kind.__name__} whose {argument} is {name}": (
            lambda kind=kind, value=value, fixed=fixed: kind(*fixed[0], value, *fixed[1]),
            argument,
        )
        for kind, argument, fixed in [
            (NormalPrior, "scale", ((0.0,), ())),
            (GammaPrior, "shape", ((), (1.0,))),
            (GammaPrior, "rate", ((1.0,), ())),
            (InverseGammaPrior, "shape", ((), (1.0,))),
            (InverseGammaPrior, "scale", ((1.0,), ())),
            (NormalInverseGammaPrior, "shape", ((0.0, 1.0), (1.0,))),
            (NormalInverseGammaPrior, "scale", ((0.0, 1.0, 1.0), ())),
        ]
        for name, value in NO_POSITIVE.items()
    },
    "NormalPrior of an infinite mean": (lambda: NormalPrior(np.inf, 1.0), "mean"),
    "NormalPrior of no mean": (lambda: NormalPrior(None, 1.0), "mean"),
    "NormalPrior of a ragged mean": (lambda: NormalPrior([[0.0], [1.0, 2.0]], 1.0), "mean"),
    "NormalPrior of unequal lengths": (lambda: NormalPrior([0.0, 1.0], [1.0, 2.0, 3.0]), "scale"),
    "GammaPrior of unequal lengths": (lambda: GammaPrior([1.0, 1.0], [1.0, 2.0, 3.0]), "rate"),
    "NormalInverseGammaPrior of no precision": (lambda: NormalInverseGammaPrior(0.0, None, 1.0, 1.0), "precision"),
    "NormalInverseGammaPrior of an indefinite precision": (
        lambda: NormalInverseGammaPrior(0.0, [[1.0, 2.0], [2.0, 1.0]], 1.0, 1.0),
        "precision",
    ),
    "NormalInverseWishartPrior of few degrees": (
        lambda: NormalInverseWishartPrior([0.0, 1.0], 1.0, 1.0, EYE),
        "degrees",
    ),
    "NormalInverseWishartPrior of no degrees": (
        lambda: NormalInverseWishartPrior([0.0, 1.0], 1.0, None, EYE),
        "degrees",
    ),
    **{
        f"NormalInverseWishartPrior of {name}": (
            lambda change=change: NormalInverseWishartPrior(
                **({"mean": [0.0, 1.0], "precision": 1.0, "degrees": 4.0, "scale": EYE} | change)
            ),
            next(iter(change)),
        )
        for name, change in {
            "an empty mean": {"mean": []},
            "a short mean": {"mean": [0.0]},
            "no degrees of freedom": {"degrees": []},
            "two degrees of freedom": {"degrees": [4.0, 5.0]},
            "two precisions": {"precision": [1.0, 2.0]},
            "one number for its scale": {"scale": 1.0, "mean": [0.0]},
        }.items()
    },
    "NormalInverseWishartPrior of no scale": (lambda: NormalInverseWishartPrior([0.0, 1.0], 1.0, 4.0, None), "scale"),
    **{
        f"normal whose mean_prior is {name}": (lambda value=value: models.normal(value, 1.0), "mean_prior")
        for name, value in NO_PRIOR.items()
    },
    "normal of a vector of means": (lambda: models.normal(NormalPrior([0.0, 1.0], 1.0), 1.0), "mean_prior.mean"),
    **{
        f"normal whose variance is {name}": (lambda value=value: models.normal(MEAN, value), "variance")
        for name, value in {**NO_POSITIVE, "two numbers": [1.0, 2.0], "a Gamma prior": GammaPrior(1, 1)}.items()
    },
    **{
        f"exponential of rate {name}": (lambda value=value: models.exponential(value), "rate")
        for name, value in {**NO_POSITIVE, "two numbers": [1.0, 2.0], "a Normal prior": MEAN}.items()
    },
    **{
        f"beta of a {name}": (lambda value=value: models.beta(value, GammaPrior(1.0, 1.0)), "a")
        for name, value in {**NO_POSITIVE, "two numbers": [1.0, 2.0], "a Normal prior": MEAN}.items()
    },
    **{
        f"categorical of concentration {name}": (lambda value=value: models.categorical(value), "concentration")
        for name, value in {**NO_POSITIVE, "one number": 1.0, "a single cell": [1.0], "a zero": [1.0, 0.0]}.items()
        if name != "negative"
    },
    "categorical of cells that do not fit": (lambda: models.categorical(np.ones(4), shape=(3, 2)), "shape"),
    "categorical of no shape": (lambda: models.categorical(np.ones(4), shape=4), "shape"),
    "categorical of a shape of fractions": (lambda: models.categorical(np.ones(4), shape=(2.0, 2.0)), "shape"),
    **{
        f"naive_bayes of classes {name}": (
            lambda value=value: models.naive_bayes(value, np.ones((3, 2, 2))),
            "class_concentration",
        )
        for name, value in {**NO_POSITIVE, "one number": 1.0, "a matrix": EYE + 1}.items()
    },
    **{
        f"naive_bayes of features {name}": (
            lambda value=value: models.naive_bayes([1.0, 1.0], value),
            "feature_concentration",
        )
        for name, value in {**NO_POSITIVE, "a matrix": EYE + 1, "three classes": np.ones((3, 3, 2))}.items()
    },
    "dirichlet of no prior": (lambda: models.dirichlet(None, 3), "shape_prior"),
    "dirichlet of a Normal prior": (lambda: models.dirichlet(MEAN, 3), "shape_prior"),
    "dirichlet of no dimension": (lambda: models.dirichlet(GammaPrior(1.0, 1.0), None), "dim"),
    "dirichlet of one share": (lambda: models.dirichlet(GammaPrior(1.0, 1.0), 1), "dim"),
    "dirichlet of a prior of another length": (lambda: models.dirichlet(GammaPrior(np.ones(2), 1.0), 3), "shape_prior"),
    "regression without covariates": (regression(covariate_mean=None, covariate_cov=None), "covariate_mean"),
    "regression without a covariance": (regression(covariate_cov=None), "covariate_mean"),
    "regression of another covariance": (regression(covariate_cov=np.eye(3)), "covariate_cov"),
    "regression of a vector of variances": (regression(covariate_cov=[1.0, 1.0]), "covariate_cov"),
    "regression of an indefinite covariance": (regression(covariate_cov=-EYE), "covariate_cov"),
    "regression of a mean of text": (regression(covariate_mean=["a", "b"]), "covariate_mean"),
    "regression of a missing mean": (regression(covariate_mean=[np.nan, 0.0]), "covariate_mean"),
    "regression of a matrix of means": (regression(covariate_mean=EYE), "covariate_mean"),
    **{
        f"regression of coefficients {name}": (regression(coef_prior=value), "coef_prior")
        for name, value in NO_PRIOR.items()
        if name != "another prior"
    },
    "regression of four coefficients": (regression(coef_prior=NormalPrior(np.zeros(4), 1.0)), "coef_prior"),
    **{
        f"regression of noise {name}": (regression(noise_variance=value), "noise_variance")
        for name, value in NO_POSITIVE.items()
    },
    "no model": (lambda: models.check_model(None), "model"),
    "a function for a model": (lambda: models.check_model(lambda key: key), "model"),
    "a class for a model": (lambda: models.check_model(Model), "model"),
    **{
        f"a model whose {name} is {what}": (checked(**{name: value}), f"Model.{name}")
        for name in ("sample_prior", "log_prior", "sample_records", "log_density", "update", "support", "derived")
        for what, value in (
            ("a number", 3),
            ("a function of no arguments that fit", lambda one, two, three, four, five: 0),
        )
    },
    "a model without a prior": (checked(log_prior=None), "Model.log_prior"),
    "a prior of an array": (checked(sample_prior=lambda key: jnp.zeros(2)), "Model.sample_prior"),
    "a prior density of each entry": (checked(log_prior=lambda parameters: jnp.zeros(2)), "Model.log_prior"),
    "records that are an array": (
        checked(sample_records=lambda key, parameters, n: jnp.zeros(n)),
        "Model.sample_records",
    ),
    "records of another number": (
        checked(sample_records=lambda key, parameters, n: {"y": jnp.zeros(4)}),
        "Model.sample_records",
    ),
    "a density of all records": (checked(log_density=lambda parameters, records: jnp.zeros(())), "Model.log_density"),
    "a density of another field": (checked(log_density=lambda parameters, records: records["x"]), "Model.log_density"),
    "data of another length in a closure": (
        checked(log_density=lambda parameters, records: records["y"] - jnp.arange(7.0)),
        "Model.log_density",
    ),
    "an update of other names": (
        checked(update=lambda key, parameters, records: {"sd": jnp.zeros(())}),
        "Model.update",
    ),
    "an update of another type": (
        checked(update=lambda key, parameters, records: {"mean": jnp.zeros((), int)}),
        "Model.update",
    ),
    "noise that does not come back": (
        checked(
            noncentred=NonCentred(lambda key, parameters, records: records, lambda parameters, noise: jnp.zeros(2))
        ),
        "Model.noncentred.records",
    ),
    "unconstrain alone": (checked(unconstrain=lambda parameters: parameters), "Model.constrain"),
    "summarize alone": (checked(summarize=lambda records: records), "Model.log_likelihood"),
    "a support of another field": (checked(support=lambda: {"x": jnp.zeros(3)}), "Model.support"),
    "a support of numbers": (checked(support=lambda: {"y": 3.0}), "Model.support"),
    "derived quantities that are no dict": (checked(derived=lambda parameters: jnp.zeros(2)), "Model.derived"),
    "a Normal field of three": (checked(normal_field=lambda parameters: (0.0, 1.0, 2.0)), "Model.normal_field"),
    "frozen_pytree of no dataclass": (lambda: dpjax.mechanisms.frozen_pytree(int), "cls"),
    "frozen_pytree of an object": (lambda: dpjax.mechanisms.frozen_pytree(MEAN), "cls"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])
