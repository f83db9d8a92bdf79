"""Valid arguments of every public function, of which a table of bad inputs replaces one at a time.

An argument is found by its name, so that a new function whose arguments have the usual names is covered at once; what
a function calls by a usual name, but means otherwise, is listed with the function.
"""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

import dpjax
from dpjax import statistics
from dpjax.private import noise
from tests.tools.public_api import is_called, public_names

CELLS = statistics.cells("cell", 2)
TOTAL = statistics.total("y", 0, 1)
MODEL = dpjax.models.categorical([1.0, 1.0])
RELEASE = dpjax.Release([2.0, 1.0], dpjax.Laplace(1.0), CELLS, 3)
BUDGET = dpjax.private.Budget(1.0, 1e-6, "replace-one")
QUERY = dpjax.private.Query("ratio", 10.0, "secure")
GAMMA = dpjax.models.GammaPrior(2.0, 2.0)
RECORDS = {"y": np.array([0.5, 0.25, 0.75])}
VECTOR = np.array([0.5, 1.0])
DRAWS = np.arange(16.0).reshape(2, 8) % 5


def draws(key: jax.Array) -> jax.Array:
    """Three numbers."""
    return jax.random.normal(key, (3,))


def opendp(name: str, **arguments: Any) -> str:
    """A measurement of OpenDP as text."""
    return json.dumps({"__function__": name, "__kwargs__": arguments})


def datavector(table: Any) -> Any:
    """The query of private-pgm that is the whole table."""
    return table


TABLE = SimpleNamespace(noisy_measurement=[7.0, 5.0], clique=("a",), stddev=2.0, query=datavector)
LOGISTIC = {"model": "LogisticRegressionDP", "coeff": [0.5, -1.0], "eps": 1.0, "gamma": 1.0}
LOGISTIC["perturbation.method"] = "objective"
MEASUREMENT = opendp("make_randomized_response_bool", prob=0.75)
SELECTION = opendp("make_report_noisy_max_gumbel", scale=4.0, optimize="max")
QUANTILE = opendp(
    "make_private_quantile", output_measure="MaxDivergence", candidates=[20, 40, 60], alpha=0.5, scale=2.0
)


def log_density(*values: Any) -> jax.Array:
    """A constant."""
    return jnp.zeros(())


def draw(key: jax.Array) -> jax.Array:
    """One number."""
    return jax.random.normal(key)


def algorithm(target: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A start and a step."""
    return log_density, log_density


def program(n: int, cell: Any = None) -> None:
    """A Normal distribution, as a NumPyro program: its draws promote neither types nor ranks."""
    mean = numpyro.sample("mean", numpyro.distributions.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("cell", numpyro.distributions.Normal(mean, 1.0), obs=cell)


def keystream(size: int) -> bytes:
    """Bytes that hide nothing."""
    return bytes(size)


def likelihood(at: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    """One that does not depend on parameters."""
    return record["y"]


TARGET = dpjax.private.target(likelihood, log_density, RECORDS, jnp.zeros(2), chunk_size=4)

KERNEL = dpjax.private.dp_penalty(TARGET, noise.jax, proposal_scale=1.0, ratio_bound=1.0, tau=10.0)

USUAL: dict[str, Any] = {
    "a": 1.0,
    "all_keys": 5,
    "b": 1.0,
    "bound": 1.0,
    "bounds": (0.0, 1.0),
    "budget": BUDGET,
    "budgets": [BUDGET],
    "candidates": [0.0, 0.5, 1.0],
    "channel": dpjax.Gaussian(1.0),
    "component": dpjax.mixture.NormalInverseGamma(0.0, 1.0, 2.0, 2.0),
    "concentration": 1.0,
    "convention": "laplace_scale",
    "covariance": np.eye(2),
    "delta": 1e-6,
    "discount": 0.25,
    "distance": 0.5,
    "draws": DRAWS,
    "eps": 1.0,
    "epsilon": 1.0,
    "factor": 0.5,
    "field": "y",
    "first": {"y": VECTOR},
    "flip": 0.25,
    "gradient_bound": 1.0,
    "gradient_share": 0.5,
    "high": 2.0,
    "k": 2,
    "keep": 0.75,
    "key": jax.random.key(0),
    "ledger": dpjax.private.Ledger(BUDGET),
    "log_density": log_density,
    "log_likelihood": log_density,
    "log_p": np.log([0.5, 0.5]),
    "log_prior": log_density,
    "log_proposal": log_density,
    "log_q": np.log([0.5, 0.5]),
    "loss": statistics.Squared(norm=1.0),
    "low": 1.0,
    "lower": 0.0,
    "m": 4,
    "matrix": np.eye(2),
    "max_steps": 20,
    "mean": 1.0,
    "measurement": MEASUREMENT,
    "mechanism": dpjax.Laplace(1.0),
    "meetings": dpjax.coupling.Meetings(np.arange(2, 12), np.ones(10, bool), 1, 20),
    "model": MODEL,
    "mu": 0.5,
    "n": 3,
    "name": "gradient",
    "neighbours": "replace-one",
    "noise": noise.jax,
    "noise_multiplier": 2.0,
    "num_bins": 4,
    "num_categories": 2,
    "num_chains": 2,
    "num_classes": 2,
    "num_draws": 2,
    "num_samples": 2,
    "num_features": 2,
    "num_iterations": 10,
    "num_leapfrog": 2,
    "num_levels": 2,
    "num_pairs": 2,
    "num_queries": 2,
    "num_records": 10,
    "num_runs": 2,
    "num_values": 2,
    "path": "missing.json",
    "positions": jnp.zeros((2, 2)),
    "precision": 1.0,
    "probability": 0.5,
    "propose": draw,
    "public_arrays": None,
    "quantile": 0.5,
    "queries": [QUERY],
    "rate": 1.0,
    "ratio_bound": 1.0,
    "records": RECORDS,
    "regularization": 1.0,
    "release": RELEASE,
    "release_design": RELEASE,
    "releases": [RELEASE],
    "resolution": 2,
    "rho": 0.5,
    "rng": np.random.default_rng(0),
    "sample_start": draw,
    "sampling_rate": 0.5,
    "scale": 1.0,
    "second": {"y": VECTOR},
    "sensitivity": 1.0,
    "shape": 2.0,
    "size": 2,
    "statistic": TOTAL,
    "step_size": 0.1,
    "target": TARGET,
    "tau_g": 10.0,
    "tau_l": 10.0,
    "threshold": 1.0,
    "upper": 1.0,
    "utilities": dpjax.mechanisms.QuantileScores(0.5, 2),
    "value": 0.5,
    "values": np.array([0.5, 1.5]),
    "vector": jnp.zeros(2),
    "weight": 0.5,
}
"""By name."""

CELL_SUM = {"value": [2.0, 1.0], "statistic": CELLS}

OWN: dict[str, dict[str, Any]] = {
    "dpjax.mechanisms.CellKeys": {"transition": ((1.0,),)},
    "dpjax.mechanisms.Coarsened": {"published": [0.0, 3.0, 3.0]},
    "dpjax.mechanisms.Heaped": {"probabilities": 0.3, "steps": 5},
    "dpjax.adapters.numpyro.unknown": {"name": "tau", "prior": dpjax.models.GammaPrior(2.0, 1.0)},
    "dpjax.mechanisms.Modulo": {"mechanism": dpjax.DiscreteLaplace(1.0), "modulus": 5},
    "dpjax.mechanisms.ReportSums": {"keep": 0.75, "flip": 0.25, "n": 3},
    "dpjax.mechanisms.SumOf": {"mechanisms": (dpjax.Laplace(1.0),)},
    "dpjax.mechanisms.Independent": {"mechanisms": (dpjax.Laplace(1.0),), "sizes": (1,)},
    "dpjax.mechanisms.LocalChannel": {"log_probabilities": np.log(np.full((2, 2), 0.5))},
    "dpjax.LocalRelease": {"channel": dpjax.Gaussian(1.0)},
    "dpjax.Microdata": {"fields": {"y": (VECTOR, dpjax.Gaussian(1.0))}},
    "dpjax.mechanisms.PoissonBinomial": {"theta": 0.25, "num_trials": 3, "lower": 0.0, "upper": 1.0},
    "dpjax.mechanisms.PrimarySuppression": {"limit": 5},
    "dpjax.mechanisms.Privacy": {"notion": "approximate", "epsilon": 1.0, "delta": 1e-6},
    "dpjax.RandomizedResponse": {"keep": 0.75, "num_categories": 2},
    "dpjax.Release": CELL_SUM,
    "dpjax.mechanisms.Rounded": {"step": 0.5},
    "dpjax.UnknownCount": {"prior": dpjax.models.UniformCount(1, 5)},
    "dpjax.comparison.compare": {"models": {"one": MODEL, "other": MODEL}},
    "dpjax.from_json": {"text": RELEASE.to_json(), "statistic": CELLS},
    "dpjax.from_numpyro": {"fn": program, "records": ["cell"]},
    "dpjax.marginal_likelihood": {
        "release": dpjax.LocalRelease([0, 1, 1], dpjax.RandomizedResponse(keep=0.75, num_categories=2)),
        "parameters": None,
    },
    "dpjax.impute": {"parameters": MODEL.sample_prior(jax.random.key(0))},
    "dpjax.sampler_tests.invariance_test": {"posterior": None},
    "dpjax.likelihood.likelihood_ratio_test": {"full": None, "restricted": None},
    "dpjax.release.mechanism_from_published": {"convention": "laplace_epsilon", "published": 1.0, "sensitivity": 1.0},
    "dpjax.data_augmentation.parameter_kernel": {"kernel": "hmc"},
    "dpjax.private.numpyro_target": {"fn": program, "records": {"cell": np.zeros(3)}},
    "dpjax.adapters.numpyro.MarkovChain": {
        "initial": VECTOR / 1.5,
        "transition": np.full((2, 2), 0.5),
        "num_times": 3,
        "values": (0, 1),
    },
    "dpjax.adapters.numpyro.NormalChain": {
        "loc": np.zeros(3),
        "coefficient": 0.5,
        "step": 1.0,
        "start": 1.0,
        "num_times": 3,
        "nugget": 0.5,
    },
    "dpjax.posterior.synthetic.combine_synthetic": {"draws": [{"mean": VECTOR}, {"mean": 9 + VECTOR}], "sizes": [4, 4]},
    "dpjax.adapters.census.read_noisy_measurements": {"path": "."},
    "dpjax.adapters.diffprivlib.read_count": {"value": 2.0},
    "dpjax.adapters.diffprivlib.read_histogram": {"counts": [1, 2], "edges": [0.0, 0.5, 1.0]},
    "dpjax.adapters.diffprivlib.read_model": {"fitted": None},
    "dpjax.adapters.dppack.read_histogram": {
        "published": {"counts": [1, 2], "breaks": [0.0, 0.5, 1.0]},
    },
    "dpjax.adapters.dppack.read_model": {"fitted": LOGISTIC, "lower_bounds": [-1.0, 0.0], "upper_bounds": [1.0, 4.0]},
    "dpjax.adapters.dppack.read_quantile": {"quant": 0.5},
    "dpjax.adapters.dppack.read_table": {"published": [1, 2]},
    "dpjax.adapters.opendp.read_quantile": {"value": 40, "measurement": QUANTILE},
    "dpjax.adapters.opendp.selection_from_opendp": {"measurement": SELECTION},
    "dpjax.adapters.pageviews.read_thresholded_counts": {
        "path": str(Path(__file__).with_name("counts.csv")),
        "keys": 5,
        "mechanism": dpjax.DiscreteLaplace(1.0),
    },
    "dpjax.adapters.pipelinedp.centred_sum": {"mean": 0.5, "count": 3.0},
    "dpjax.adapters.pipelinedp.noise_of": {"epsilon": 1.0},
    "dpjax.adapters.pipelinedp.read_mean": {"mean": 0.5, "n": 100},
    "dpjax.adapters.private_pgm.read_linear_measurements": {
        "measurements": [TABLE],
        "domain": {"a": 2},
        "n": 12,
        "mechanism": dpjax.Gaussian,
    },
    "dpjax.adapters.tumult.mechanism_from_tumult": {"noise": {"mechanism": "LAPLACE", "noise_parameter": 1.0}},
    "dpjax.adapters.smartnoise.mechanism_from_smartnoise": {"mechanism": dpjax.Laplace(1.0)},
    "dpjax.adapters.smartnoise.read_result": {
        "result": [("n",), (7,)],
        "accuracies": [2.0],
        "alpha": 0.05,
        "statistics": {"n": CELLS},
        "by": None,
        "levels": None,
        "gaussian": (),
        "clamped": (),
    },
    "dpjax.adapters.tumult.read_average": {
        "low": 0.0,
        "high": 1.0,
        "sum_noise": dpjax.Laplace(1.0),
        "count_noise": dpjax.DiscreteLaplace(1.0),
        "whole": False,
    },
    "dpjax.adapters.tumult.read_quantile": {"low": 0.0, "high": 1.0, "epsilon": 1.0},
    "dpjax.coupling.common_uniform": dict.fromkeys(("uniform", "log_p", "log_q"), np.array(0.5)),
    "dpjax.coupling.coupled_exchangeable": {"sample_start": draws, "imputation": dpjax.imwg()},
    "dpjax.coupling.maximal": {
        "sample_p": draw,
        "log_p": log_density,
        "sample_q": draw,
        "log_q": log_density,
        "max_trials": 10.0,
    },
    "dpjax.coupling.median_width": {"draws": VECTOR},
    "dpjax.coupling.meeting_times": {"kernel": None},
    "dpjax.coupling.reflection_maximal": {"mean_p": VECTOR, "mean_q": VECTOR, "factor": np.eye(2)},
    "dpjax.coupling.squared_mmd": {"first": VECTOR, "second": VECTOR, "width": 1.0},
    "dpjax.coupling.total_variation_bounds": {"times": np.arange(3)},
    "dpjax.coupling.unbiased_estimates": {"kernel": None, "function": log_density},
    "dpjax.mixture.NormalInverseWishart": {"mean": VECTOR, "degrees": 3.0, "scale": np.eye(2)},
    "dpjax.mixture.gibbs": {"channel": dpjax.Gaussian(1.0)},
    "dpjax.mixture.sample": {"channel": dpjax.Gaussian(1.0)},
    "dpjax.mixture.expected_loss": {"labels": np.zeros((2, 3), int), "partition": np.zeros(3, int)},
    "dpjax.mixture.find_partition": {"labels": np.zeros((2, 3), int)},
    "dpjax.mixture.register_tractable": {"channel": dpjax.Tulap, "component": dpjax.mixture.GammaShapes},
    "dpjax.models.NormalInverseWishartPrior": {"mean": VECTOR, "degrees": 3.0, "scale": np.eye(2)},
    "dpjax.models.UniformCount": {"low": 1, "high": 5},
    "dpjax.models.categorical": {"concentration": VECTOR},
    "dpjax.models.dirichlet": {"shape_prior": GAMMA, "dim": 2},
    "dpjax.models.NegativeBinomialCount": {"size": 2.0},
    "dpjax.models.exponential": {"rate_prior": 1.0},
    "dpjax.models.formula": {
        "formula": "y ~ x",
        "data": {"x": VECTOR},
        "family": "poisson",
        "priors": {"x": dpjax.models.NormalPrior(0.0, 1.0)},
    },
    "dpjax.models.linear_regression": {
        "covariate_mean": VECTOR,
        "covariate_cov": np.eye(2),
        "coef_prior": dpjax.models.NormalPrior(np.zeros(3), np.ones(3)),
        "noise_variance": 1.0,
    },
    "dpjax.models.hyper_dirichlet": {"domain": {"a": 2, "b": 3}, "tables": [("a", "b")], "prior_number": 6.0},
    "dpjax.models.latent_classes": {"domain": {"a": 2, "b": 3}, "classes": 2},
    "dpjax.models.log_linear": {"domain": {"a": 2, "b": 3}, "tables": [("a", "b")]},
    "dpjax.models.naive_bayes": {"class_concentration": VECTOR, "feature_concentration": np.ones((2, 2, 2))},
    "dpjax.models.normal": {"mean_prior": dpjax.models.NormalPrior(0.0, 1.0), "variance": 1.0},
    "dpjax.plot.forest": {"answers": {"first": {"mean": DRAWS}, "second": {"mean": DRAWS}}},
    "dpjax.private.clipped_ratios": {"proposal": jnp.ones(2)},
    "dpjax.private.design": {"candidates": CELLS},
    "dpjax.private.dp_penalty": {"proposal_scale": 1.0, "tau": 10.0},
    "dpjax.private.dp_sgnht": {"diffusion": 1.0},
    "dpjax.private.Query": {"grade": "secure"},
    "dpjax.private.halton_steps": {"low": 0.5, "high": 1.5, "length": 4},
    "dpjax.private.make_kernel": {"build": algorithm},
    "dpjax.private.model_target": {"records": {"cell": np.zeros(3, int)}},
    "dpjax.private.plan": {"pilot": TARGET, "source": "public"},
    "dpjax.private.release": {"noise": noise.Secure(keystream), "n": 3},
    "dpjax.private.rwmh": {"proposal_scale": 1.0},
    "dpjax.private.sample": {
        "kernel": dpjax.private.dp_penalty(TARGET, noise.jax, proposal_scale=1.0, ratio_bound=1.0, tau=10.0)
    },
    "dpjax.private.target": {"position": jnp.zeros(2), "log_likelihood": likelihood},
    "dpjax.releases.hadamard_response": {"reports": np.zeros(3, int), "field": "cell"},
    "dpjax.releases.likelihoods": {"log_likelihoods": np.zeros((3, 2)), "field": "cell"},
    "dpjax.releases.linear": CELL_SUM,
    "dpjax.releases.local_hashing": {
        "reports": np.zeros(3, int),
        "hashes": np.zeros((3, 2), int),
        "field": "cell",
    },
    "dpjax.releases.estimates": {"values": [0.5, 1.5], "standard_errors": [0.1, 0.2], "field": "y"},
    "dpjax.releases.moments": {
        "mean": [0.5],
        "variance": [0.25],
        "count": [3.0],
        "sums": TOTAL,
        "squares": TOTAL,
        "counts": statistics.count(),
        "sum_noise": dpjax.Laplace(1.0),
        "square_noise": dpjax.Laplace(1.0),
        "count_noise": dpjax.Laplace(1.0),
    },
    "dpjax.releases.objective_perturbation": {
        "coefficients": VECTOR,
        "noise": dpjax.VectorLaplace(1.0),
        "regularization": 1.0,
    },
    "dpjax.releases.quotient": {
        "numerator": TOTAL,
        "denominator": statistics.count(),
        "numerator_noise": dpjax.Laplace(1.0),
        "denominator_noise": dpjax.Laplace(1.0),
    },
    "dpjax.releases.subset_selection": {"subsets": np.array([[0, 1], [1, 0], [1, 0]]), "field": "cell"},
    "dpjax.releases.suppressed": {"value": [12.0, 7.0], "statistic": CELLS, "limit": 5},
    "dpjax.releases.suppressed_units": {"values": [12.0, 7.0], "limit": 5, "field": "y"},
    "dpjax.releases.thresholded_units": {"values": [2.0, 3.0], "threshold": 1.0, "field": "y"},
    "dpjax.releases.thresholded": {"keys": ["a", "b"], "values": [2.0, 3.0], "all_keys": ["a", "b", "c"]},
    "dpjax.releases.randomized_response_counts": {"counts": [2, 1], "keep": 0.75},
    "dpjax.releases.withheld_units": {
        "values": [2.0, np.nan, 4.0],
        "totals": dpjax.Release([9.0], dpjax.Exact(), statistics.total("y"), 3),
        "field": "y",
    },
    "dpjax.releases.unary_encoding_sums": {
        "sums": [2.0, 1.0],
        "keep": 0.75,
        "flip": 0.25,
        "n": 3,
        "field": "cell",
        "reports": 1,
    },
    "dpjax.releases.unary_encoding": {"bits": np.eye(3, 2, dtype=int), "field": "cell"},
    "dpjax.releases.variance": {"noise": dpjax.Laplace(1.0)},
    "dpjax.statistics.around": {"points": [0.5]},
    "dpjax.statistics.gram": {"lower": [0.0], "upper": [1.0]},
    "dpjax.statistics.group_totals": {"by": "cell", "levels": ["a", "b"]},
    "dpjax.statistics.grouped": {"groups": [0, 1]},
    "dpjax.statistics.histogram": {"edges": [0.0, 0.5, 1.0]},
    "dpjax.statistics.linear": {"statistic": CELLS},
    "dpjax.statistics.log_composition": {"lower": 0.01},
    "dpjax.statistics.loss_derivatives": {"coefficients": VECTOR},
}
"""By function."""


THEORY = (
    "imwg_approach_bound",
    "soma_acceptance_bound",
    "soma_approach_bound",
    "soma_contraction_bound",
    "soma_departure_bound",
)
OWN |= {f"dpjax.coupling.theory.{name}": {"n": 3.0} for name in THEORY}
WEIGHTS = {"log_weights": VECTOR, "log_current": 0.5}
OWN |= {
    "dpjax.coupling.theory.soma_proposal_acceptance": WEIGHTS,
    "dpjax.coupling.theory.imwg_proposal_acceptance": WEIGHTS,
    "dpjax.coupling.theory.imwg_distance_bound": {"acceptance": 0.5, "steps": 2.0},
    "dpjax.coupling.theory.soma_variance_bound": {"imwg_variance": 3.0, "variance": 1.0, "n": 3.0},
}

RESULTS = {
    "Distance",
    "Estimate",
    "MaximumLikelihood",
    "Meetings",
    "MixturePosterior",
    "NoisyMeasurements",
    "Posterior",
    "Rate",
    "ThresholdedCounts",
    "UnbiasedEstimates",
}
"""Classes with parameters that dpjax alone calls."""


def is_built_by_users(value: Any) -> bool:
    """Whether it is called by users: a function, or a class whose docstring lists parameters rather than fields."""
    if not is_called(value) or value.__name__ in RESULTS:
        return False
    return not inspect.isclass(value) or "Parameters\n" in inspect.cleandoc(value.__doc__ or "")


def public_functions() -> dict[str, Callable[..., Any]]:
    """What users call, each once, by its path."""
    found: dict[Any, str] = {}
    for path, value in public_names():
        if is_built_by_users(value):
            found.setdefault(value, path)
    return {path: value for value, path in found.items()}
