"""`dpjax.models.check` accepts right models, and finds a fault in each member of a wrong one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import ndtr, ndtri
from jax.scipy.stats import gamma

import dpjax
from dpjax import models
from dpjax.base import NonCentred, NormalScores
from dpjax.models import law_identities, laws
from tests.models.cases import CASES

FAULTS = (
    *("sample_prior", "log_prior", "sample_records", "log_density", "normaliser", "update", "update_log_density"),
    *("update_normaliser", "noise", "round trip", "scores", "scores back", "constrain", "log_jacobian", "sum"),
)


class Waiting(dpjax.Model):
    """Exponential times y under a Gamma(3, 2) prior of their rate, with everything that makes samplers faster.

    Each entry of `faults` makes one member wrong by so much. They are numbers, so that all models share programs.
    """

    faults: Any

    def fault(self, name: str) -> Any:
        return self.faults[FAULTS.index(name)]

    def sample_prior(self, key: jax.Array) -> dict:
        return {"rate": jax.random.gamma(key, 3.0 + self.fault("sample_prior")) / 2.0}

    def log_prior(self, parameters: dict) -> Any:
        return gamma.logpdf(parameters["rate"], 3.0, scale=1 / (2.0 + self.fault("log_prior")))

    def sample_records(self, key: jax.Array, parameters: dict, n: int) -> dict:
        return {"y": jax.random.exponential(key, (n,)) ** (1 + self.fault("sample_records")) / parameters["rate"]}

    def log_density(self, parameters: dict, records: dict) -> Any:
        rate, y = parameters["rate"], records["y"]
        normaliser = (1 - self.fault("normaliser")) * jnp.log(rate)
        return jnp.where(y >= 0, normaliser - rate * y * (1 + self.fault("log_density")), -jnp.inf)

    def posterior(self, records: dict) -> tuple[Any, Any]:
        return 3.0 + len(records["y"]), 2.0 + jnp.sum(records["y"])

    def update(self, key: jax.Array, parameters: dict, records: dict) -> dict:
        shape, rate = self.posterior(records)
        return {"rate": jax.random.gamma(key, shape + self.fault("update")) / rate}

    def update_log_density(self, new: dict, parameters: dict, records: dict) -> Any:
        shape, rate = self.posterior(records)
        wrong = self.fault("update_normaliser") * jnp.log(rate)
        return gamma.logpdf(new["rate"], shape, scale=1 / (rate * (1 + self.fault("update_log_density")))) + wrong

    @property
    def noncentred(self) -> NonCentred:
        power, wrong = 1 + self.fault("noise"), 1 + self.fault("round trip")
        scale, back = 1 + self.fault("scores"), 1 + self.fault("scores back")
        return NonCentred(
            lambda key, parameters, records: records["y"] * parameters["rate"] ** power,
            lambda parameters, noise: {"y": noise / parameters["rate"] ** power * wrong},
            scores=NormalScores(
                lambda noise: scale * ndtri(-jnp.expm1(-noise)), lambda scores: -jnp.log(ndtr(-scores / scale)) * back
            ),
        )

    def summarize(self, records: dict) -> Any:
        return len(records["y"]), jnp.sum(records["y"])

    def log_likelihood(self, parameters: dict, summary: Any) -> Any:
        n, total = summary
        wrong = 1 + self.fault("sum") + self.fault("log_density")
        return n * (1 - self.fault("normaliser")) * jnp.log(parameters["rate"]) - parameters["rate"] * total * wrong

    def unconstrain(self, parameters: dict) -> dict:
        return {"rate": jnp.log(parameters["rate"])}

    def constrain(self, free: dict) -> dict:
        return {"rate": jnp.exp(free["rate"] + self.fault("constrain"))}

    def log_jacobian(self, free: dict) -> Any:
        return free["rate"] * (1 + self.fault("log_jacobian"))


FOUND = {
    "sample_prior": (0.6, "log_prior: .* standard errors"),
    "log_prior": (0.5, "log_prior: .* standard errors"),
    "sample_records": (0.2, "log_density: .*what sample_records draws"),
    "log_density": (0.2, "log_density: .*what sample_records draws"),
    "normaliser": (1.0, "log_density: .*normalised at all parameters"),
    "update": (0.5, r"update: .*p\(parameters \| records\)"),
    "update_log_density": (0.2, "update_log_density: .*the log-density of update"),
    "update_normaliser": (1.0, "update_log_density: .*normalised"),
    "noise": (0.3, "noncentred: .*free of the parameters"),
    "round trip": (0.1, r"noncentred\.records: .*records .* at 100% of the draws"),
    "scores": (0.2, r"noncentred\.scores: .*standard Normal"),
    "scores back": (0.1, r"noncentred\.scores: .*noise .* for "),
    "constrain": (0.1, "constrain: .*that unconstrain was given"),
    "log_jacobian": (0.2, r"log_jacobian: .*log \|det\| of constrain"),
    "sum": (0.1, "log_likelihood: .*the sum of log_density"),
}


def wrong(name: str) -> Waiting:
    """The model with one fault."""
    return Waiting(np.where(np.array(FAULTS) == name, FOUND[name][0] if name in FOUND else 0.0, 0.0))


@pytest.mark.parametrize("name", FOUND)
def test_a_fault_in_each_member_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^Model\.{FOUND[name][1]}"):
        models.check(jax.random.key(1), wrong(name))


def test_the_model_without_a_fault_passes() -> None:
    found = models.check(jax.random.key(1), wrong("none"))
    assert list(found) == [move.name for move in laws.MOVES]
    assert min(found.values()) > laws.LEVEL


@pytest.mark.parametrize("name", CASES)
def test_shipped_models_pass(name: str) -> None:
    """The members of each kind together, which other tests compare one by one."""
    assert min(models.check(jax.random.key(2), CASES[name]).values()) > laws.LEVEL


def test_models_of_numpyro_pass() -> None:
    """A count, a field of few values and a real one, of which the second is drawn by its densities."""
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions as dist

    def model(n: int) -> None:
        rate = numpyro.sample("rate", dist.Gamma(3.0, 1.0))
        with numpyro.plate("records", n):
            group = numpyro.sample("group", dist.Bernoulli(0.3))
            numpyro.sample("count", dist.Poisson(rate))
            numpyro.sample("y", dist.Normal(rate, 1.0 + group.astype(float)))

    with jax.numpy_dtype_promotion("standard"):  # as NumPyro has it
        found = models.check(jax.random.key(3), dpjax.from_numpyro(model, records=("group", "count", "y")))
    assert min(found.values()) > laws.LEVEL


TABLE = CASES["categorical"]
LISTED = {
    "a value too few": ({"support": lambda: {name: leaf[1:] for name, leaf in TABLE.support().items()}}, "support"),
    "a value twice": (
        {"support": lambda: {name: leaf[jnp.array([0, 0, 1, 2, 3])] for name, leaf in TABLE.support().items()}},
        "support",
    ),
    "probabilities of 1.1": (
        {"log_density": lambda parameters, records: TABLE.log_density(parameters, records) + 0.1, "conjugate": None},
        "support: given .* 1.10517 for 1",
    ),
    "sums of another prior": (
        {"conjugate": lambda: TABLE.conjugate()._replace(shift=TABLE.conjugate().shift + 0.5)},
        "conjugate",
    ),
    "no density": (
        {"log_prior": lambda parameters: jnp.where(parameters["probabilities"][0] > 0.1, 0.0, -jnp.inf)},
        "log_prior: given whether the density is finite 0 for 1",
    ),
}


@pytest.mark.x64
@pytest.mark.parametrize("case", LISTED)
def test_faults_of_listed_records_are_named(case: str) -> None:
    """By identities alone, whose programs are light."""
    changes, text = LISTED[case]
    states = laws.draw_states(jax.random.key(1), TABLE, 64, 4)
    law_identities.check_identities(jax.random.key(2), TABLE, states)
    with pytest.raises(ValueError, match=rf"^Model\.{text}"):
        law_identities.check_identities(jax.random.key(2), TABLE._replace(**changes), states)


@pytest.mark.x64
def test_a_wrong_normal_field_is_named() -> None:
    model = CASES["normal"]
    states = laws.draw_states(jax.random.key(1), model, 64, 4)
    wrong = model._replace(normal_field=lambda parameters: (parameters["mean"], jnp.array(1.1)))
    with pytest.raises(ValueError, match=r"^Model\.normal_field: "):
        law_identities.check_identities(jax.random.key(2), wrong, states)


def test_keys_are_asked_for() -> None:
    with pytest.raises(TypeError, match=r"^key: given 1"):
        models.check(1, CASES["normal"])
