"""Models written by users are checked by shape, and the message names the function that is wrong."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

import dpjax
from dpjax.base import Model, NonCentred
from dpjax.models import NormalPrior, check_model, normal
from dpjax.models.checks import check_fit
from tests.models.cases import CASES

GOOD = normal(NormalPrior(0.0, 1.0), 1.0)
MINIMAL = Model(GOOD.sample_prior, GOOD.log_prior, GOOD.sample_records, GOOD.log_density)
CATEGORICAL = CASES["categorical"]


@pytest.mark.parametrize(
    "release",
    [
        dpjax.LocalRelease([0, 1], dpjax.RandomizedResponse(keep=0.8, num_categories=2)),
        dpjax.releases.hadamard_response([0, 1], keep=0.8, num_categories=2),
        dpjax.releases.unary_encoding([[0, 1], [1, 0]], keep=0.8, flip=0.2),
    ],
)
def test_channels_know_all_categories(release: dpjax.LocalRelease) -> None:
    """Other tests have too many categories in tables; here a channel has too few, for all and for possible cells."""
    model = dpjax.models.categorical([1.0, 1.0, 1.0], possible=[True, False, True])
    with pytest.raises(ValueError, match=r"^release: given a channel of 2 categories of 'cell', without 2 "):
        check_fit(model, release)
    check_fit(dpjax.models.categorical([1.0, 1.0], possible=[True, True]), release)


def four_records() -> dict:
    return {"y": jnp.zeros(4)}


def test_four_functions_are_enough() -> None:
    check_model(MINIMAL)


BAD: dict[str, tuple[dict, type[Exception], str]] = {
    "a record law summed over records": (
        {"log_density": lambda parameters, records: GOOD.log_density(parameters, records).sum()},
        ValueError,
        "Model.log_density: given shape float64[] for 3 records; expected shape [3]",
    ),
    "a record law with a kept axis": (
        {"log_density": lambda parameters, records: GOOD.log_density(parameters, records)[:, None]},
        ValueError,
        "Model.log_density: given shape float64[3, 1]",
    ),
    "one record whatever n": (
        {"sample_records": lambda key, parameters, n: {"y": jnp.zeros(3)}},
        ValueError,
        "Model.sample_records: given field 'y' of shape [3]; expected a leading axis of 5",
    ),
    "records without names": (
        {"sample_records": lambda key, parameters, n: jnp.zeros(n)},
        TypeError,
        "Model.sample_records: given ShapeDtypeStruct; expected a dict of records",
    ),
    "parameters without names": ({"sample_prior": lambda key: jnp.zeros(2)}, TypeError, "Model.sample_prior: given"),
    "a parameter called as the number of records": (
        {"sample_prior": lambda key: {"num_records": GOOD.sample_prior(key)["mean"]}},
        ValueError,
        "model: given a name 'num_records'; expected other names. The number of records is reported under it",
    ),
    "a prior of each entry": (
        {"log_prior": lambda parameters: jnp.zeros(2)},
        ValueError,
        "Model.log_prior: given float64[2]; expected a single number",
    ),
    "an update that loses a name": (
        {"update": lambda key, parameters, records: {}},
        ValueError,
        "Model.update: given {}",
    ),
    "an update of another type": (
        {"update": lambda key, parameters, records: {"mean": jnp.zeros((), int)}},
        ValueError,
        "Model.update: given {'mean': 'int64[]'}; expected the names, shapes and dtypes of the parameters",
    ),
    "noise that gives other records": (
        {
            "noncentred": NonCentred(
                lambda key, parameters, records: records["y"], lambda parameters, noise: {"z": noise}
            )
        },
        ValueError,
        "Model.noncentred.records: given {'z'",
    ),
    "one map only": ({"constrain": dict}, ValueError, "Model.unconstrain: given None; expected a function, because"),
    "a summary without its density": (
        {"summarize": lambda records: records},
        ValueError,
        "Model.log_likelihood: given None",
    ),
    "a density without its summary": (
        {"log_likelihood": lambda parameters, summary: 0.0},
        ValueError,
        "Model.summarize: given None",
    ),
    "a likelihood of each record": (
        {
            "summarize": lambda records: records["y"],
            "log_likelihood": lambda parameters, summary: summary - parameters["mean"],
        },
        ValueError,
        "Model.log_likelihood: given float64[3]",
    ),
    "maps that lose a name": (
        {"unconstrain": lambda parameters: {}, "constrain": lambda unconstrained: unconstrained},
        ValueError,
        "Model.unconstrain: given names []; expected names ['mean']",
    ),
    "maps that do not return": (
        {"unconstrain": dict, "constrain": lambda unconstrained: {"mean": jnp.zeros(2)}},
        ValueError,
        "Model.constrain: given {'mean': 'float64[2]'}",
    ),
    "a support of other fields": (
        {"support": lambda: {"z": jnp.zeros(2)}},
        ValueError,
        "Model.support: given {'z': 'float64[]'}",
    ),
    "a support without an axis": (
        {"support": lambda: {"y": jnp.zeros(())}},
        ValueError,
        "Model.support: given {'y': 'float64[]'}; expected fields with one leading axis [c]",
    ),
    "a field without its scale": (
        {"normal_field": lambda parameters: parameters["mean"]},
        ValueError,
        "Model.normal_field: given float64[]",
    ),
    "derived without names": ({"derived": lambda parameters: parameters["mean"]}, TypeError, "Model.derived"),
    "quantities of records without names": ({"reported": lambda records: records["y"]}, TypeError, "Model.reported"),
    "integrated out of what is not listed": ({"conjugate": CATEGORICAL.conjugate}, ValueError, "Model.support: given"),
    "sums of other records": (
        {"support": lambda: {"y": jnp.zeros(3)}, "conjugate": CATEGORICAL.conjugate},
        ValueError,
        "Model.conjugate: given places int64[4, 2]; expected integers [3, m]",
    ),
    "sums without a sign": (
        {"support": four_records, "conjugate": lambda: CATEGORICAL.conjugate()._replace(sign=jnp.ones(2))},
        ValueError,
        "Model.conjugate: given shift float64[5], sign float64[2]",
    ),
    "other parameters by sums": (
        {"support": four_records, "conjugate": CATEGORICAL.conjugate},
        ValueError,
        "Model.conjugate.update: given {'probabilities'",
    ),
    "a determinant of each entry": (
        {"unconstrain": dict, "constrain": dict, "log_jacobian": lambda unconstrained: jnp.zeros(2)},
        ValueError,
        "Model.log_jacobian: given float64[2]",
    ),
}


def softmax_of(size: int) -> Model:
    """Three probabilities by the logarithms of so many ratios."""

    def ratios(parameters: dict) -> dict:
        logs = jnp.log(parameters["p"])
        return {"p": logs[:size] - (logs[2] if size == 2 else 0.0)}

    return Model(
        lambda key: {"p": jax.random.dirichlet(key, jnp.ones(3))},
        lambda parameters: jnp.zeros(()),
        lambda key, parameters, n: {"y": jax.random.choice(key, 3, (n,), p=parameters["p"])},
        lambda parameters, records: jnp.log(parameters["p"])[records["y"]],
        unconstrain=ratios,
        constrain=lambda free: {"p": jax.nn.softmax(jnp.append(free["p"], jnp.zeros(3 - size)))},
    )


def scaled_mean() -> Model:
    """A scale, and a mean that is mapped by it: the Jacobian is triangular, and its diagonal is not enough."""

    def sample_prior(key: jax.Array) -> dict:
        return {"mean": jax.random.normal(key), "scale": 1.0 + jax.random.uniform(key)}

    return MINIMAL._replace(
        sample_prior=sample_prior,
        unconstrain=lambda parameters: {
            "mean": parameters["mean"] / parameters["scale"],
            "scale": jnp.log(parameters["scale"]),
        },
        constrain=lambda free: {"mean": free["mean"] * jnp.exp(free["scale"]), "scale": jnp.exp(free["scale"])},
    )


NOT_ELEMENTWISE = {
    "three log-ratios": (softmax_of(3), "given a map by which a number depends on others, by 1 of its slope"),
    "two log-ratios": (softmax_of(2), "given 3 numbers of 'p' by 2 unconstrained ones"),
    "a mean times a scale": (scaled_mean(), "given a map by which a number depends on others, by 0."),
}


@pytest.mark.parametrize("case", NOT_ELEMENTWISE)
def test_maps_without_a_determinant_are_elementwise(case: str) -> None:
    """They were taken to be so: a simplex had the means 0.208, 0.288, 0.504 for 0.199, 0.362, 0.438."""
    model, words = NOT_ELEMENTWISE[case]
    with pytest.raises(ValueError, match=r"^Model.constrain: .*expected a log_jacobian") as raised:
        check_model(model)
    assert words in str(raised.value)
    check_model(model._replace(log_jacobian=lambda free: jnp.zeros(())))


def test_confidential_records_need_the_same() -> None:
    """A target for the data holder's chains has the same Jacobian, and checked nothing."""
    with pytest.raises(ValueError, match=r"^Model.constrain: "):
        dpjax.private.model_target(softmax_of(3), {"y": jnp.zeros(4, int)})


@pytest.mark.x64
@pytest.mark.parametrize("case", BAD)
def test_wrong_function_is_named(case: str) -> None:
    changes, error, words = BAD[case]
    with pytest.raises(error) as raised:
        check_model(MINIMAL._replace(**changes))
    assert words in str(raised.value)


def test_errors_inside_a_function_are_shown_with_its_name() -> None:
    def broken(parameters: dict, records: dict) -> jax.Array:
        return records["x"]

    with pytest.raises(ValueError, match=r"Model.log_density: given a function that raised KeyError: 'x'") as raised:
        check_model(MINIMAL._replace(log_density=broken))
    assert isinstance(raised.value.__context__, KeyError)


@pytest.mark.parametrize("name", ["regression, joint", "naive Bayes"])
def test_nothing_is_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Callable:
        raise AssertionError("compiled")

    monkeypatch.setattr(jax._src.compiler, "compile_or_get_cached", refuse)
    check_model(CASES[name])
