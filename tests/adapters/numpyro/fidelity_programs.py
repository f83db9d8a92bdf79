"""NumPyro programs that `from_numpyro` takes as NumPyro means them, or refuses in the words given here."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist, handlers
from numpyro.contrib.control_flow import cond, scan
from numpyro.infer.reparam import LocScaleReparam, TransformReparam

from tests.adapters.numpyro.fidelity_laws import PRIORS, RECORD_LAWS, transformed

EQUAL = "equal"


class Program(NamedTuple):
    """A model, the names of its records, and "equal" or words of the refusal."""

    name: str
    function: Callable[..., Any]
    records: tuple[str, ...] = ("y",)
    expected: str = EQUAL


def of_records(law: Callable[[Any, Any], Any]) -> Callable[..., None]:
    """Records of a law of a location and a scale."""

    def model(n: int = 4) -> None:
        m = numpyro.sample("m", dist.Normal(0.3, 0.5))
        s = numpyro.sample("s", dist.LogNormal(0.0, 0.3))
        with numpyro.plate("records", n):
            numpyro.sample("y", law(m, s))

    return model


def of_prior(law: Callable[[], Any], **options: Any) -> Callable[..., None]:
    """A parameter of any law and shape."""

    def model(n: int = 4) -> None:
        theta = numpyro.sample("theta", law(), **options)
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(jnp.sum(jnp.tanh(theta)), 1.0))

    return model


def with_statement(statement: Callable[[Any], Any]) -> Callable[..., None]:
    """A statement of the mean between the prior and the records."""

    def model(n: int = 4) -> None:
        m = numpyro.sample("m", dist.Normal(0.0, 1.0))
        found = statement(m)
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(m if found is None else found, 1.0))

    return model


def in_plate(statement: Callable[[Any], Any], **plate: Any) -> Callable[..., None]:
    """A statement of the mean in the records' plate."""

    def model(n: int = 4) -> None:
        m = numpyro.sample("m", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", n, **plate):
            statement(m)

    return model


def normal(m: Any) -> Any:
    return numpyro.sample("y", dist.Normal(m, 1.0))


base = in_plate(normal)


def group_plate(size: int, **plate: Any) -> Callable[..., None]:
    def model(n: int = 4) -> None:
        centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
        with numpyro.plate("groups", size, **plate):
            effect = numpyro.sample("effect", dist.Normal(centre, 0.7))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(jnp.sum(effect), 1.0))

    return model


def nested_groups(n: int = 4) -> None:
    with numpyro.plate("outer", 2, dim=-2), numpyro.plate("inner", 3, dim=-1):
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(jnp.mean(effect), 1.0))


def groups_after_records(n: int = 4) -> None:
    m = numpyro.sample("m", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(m, 1.0))
    with numpyro.plate("groups", 3):
        numpyro.sample("unused", dist.Gamma(2.0, 1.0))


def two_fields(first: Any, second: Callable[[Any, Any], Any]) -> Callable[..., None]:
    def model(n: int = 4) -> None:
        m = numpyro.sample("m", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", n):
            x = numpyro.sample("x", first)
            numpyro.sample("y", second(m, x))

    return model


def hierarchy(law: Callable[[Any, Any], Any], **handler: Any) -> Callable[..., None]:
    def model(n: int = 4) -> None:
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        theta = numpyro.sample("theta", law(mu, tau))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(theta, 1.0))

    return handlers.reparam(model, **handler) if handler else model


def shares(law: Callable[[], Any], records: Callable[[Any], Any]) -> Callable[..., None]:
    """Records of a law of one argument, which has a prior."""

    def model(n: int = 4) -> None:
        p = numpyro.sample("p", law())
        with numpyro.plate("records", n):
            numpyro.sample("y", records(p))

    return model


def closure(scale: float) -> Callable[..., None]:
    weights = jnp.array([1.0, 2.0])
    return with_statement(lambda m: jnp.sum(weights) * scale * m)


def scanned(m: Any) -> Any:
    return scan(lambda c, _: (numpyro.sample("z", dist.Normal(c, 1.0)),) * 2, m, None, length=3)[0]


SHAPED = {
    "sample_shape": of_prior(lambda: dist.Normal(0.0, 2.0), sample_shape=(3,)),
    "sample_shape of two axes": of_prior(lambda: dist.Gamma(2.0, 1.0), sample_shape=(2, 3)),
    "sample_shape of a batch": of_prior(lambda: dist.Normal(jnp.zeros(2), 1.0), sample_shape=(3,)),
    "sample_shape of an event": of_prior(lambda: dist.Dirichlet(jnp.ones(3)), sample_shape=(2,)),
    "sample_shape of an expansion": of_prior(lambda: dist.Beta(2.0, 3.0).expand([2]).to_event(1), sample_shape=(3,)),
    "sample_shape of one": of_prior(lambda: dist.HalfNormal(1.0), sample_shape=(1,)),
}
HANDLED = {
    "seed": handlers.seed(base, 0),
    "seed and block": handlers.block(handlers.seed(base, 0), hide=["nothing"]),
    "do": handlers.do(base, data={"m": 2.0}),
    "scale of one": handlers.scale(base, scale=1.0),
    "trace": handlers.trace(base),
    "group plate": group_plate(3),
    "group plate of one": group_plate(1),
    "group plate on axis -2": group_plate(3, dim=-2),
    "nested group plates": nested_groups,
    "groups after the records": groups_after_records,
    "full subsample": in_plate(normal, subsample_size=4),
    "module-level closure": closure(0.3),
    "deterministic": with_statement(lambda m: numpyro.deterministic("twice", 2 * m)),
    "centred hierarchy": hierarchy(dist.Normal),
    "lognormal hierarchy": hierarchy(dist.LogNormal),
    "Uniform with a moving end": hierarchy(lambda mu, tau: dist.Uniform(mu, mu + tau)),
    "LocScaleReparam": hierarchy(dist.Normal, config={"theta": LocScaleReparam(0)}),
    "half-centred LocScaleReparam": hierarchy(dist.Normal, config={"theta": LocScaleReparam(0.5)}),
    "TransformReparam": hierarchy(transformed, config={"theta": TransformReparam()}),
    "lift": handlers.lift(with_statement(lambda m: numpyro.param("a", 1.0) * m), prior={"a": dist.Gamma(2.0, 2.0)}),
    "probability of Beta": shares(lambda: dist.Beta(2.0, 2.0), dist.Bernoulli),
    "probability of Uniform": shares(lambda: dist.Uniform(0.0, 1.0), dist.Bernoulli),
    "probabilities of Dirichlet": shares(lambda: dist.Dirichlet(jnp.ones(4)), dist.Categorical),
    "rate of Gamma": shares(lambda: dist.Gamma(0.8, 1.0), dist.Poisson),
    "decreasing scale": shares(lambda: dist.HalfCauchy(1.0), lambda p: dist.Normal(0.0, jnp.exp(-p))),
}
FIELDS = {
    "regression": two_fields(dist.Normal(0.0, 1.0), lambda m, x: dist.Normal(m * x, 1.0)),
    "logistic": two_fields(dist.Normal(0.0, 1.0), lambda m, x: dist.Bernoulli(logits=m * x)),
    "group label": two_fields(dist.Bernoulli(0.3), lambda m, x: dist.Normal(m * x, 1.0)),
    "table": two_fields(dist.Categorical(jnp.ones(3) / 3), lambda m, x: dist.Bernoulli(logits=m * x)),
    "mask of a label": two_fields(dist.Bernoulli(0.3), lambda m, x: dist.Normal(jnp.where(x == 1, m, 0.0), 1.0)),
}
ONE_VALUE = "given a value by handlers.substitute"
REFUSED: dict[str, tuple[Any, str]] = {
    "substitute": (handlers.substitute(base, data={"m": 2.0}), ONE_VALUE),
    "condition": (handlers.condition(base, data={"m": 2.0}), "'m' observed"),
    "block without a key": (handlers.block(base, hide=["m"]), "a random key"),
    "mask": (handlers.mask(base, mask=False), "'m' masked"),
    "scale": (handlers.scale(base, scale=2.0), "'m' scaled"),
    "obs_mask": (
        in_plate(lambda m: numpyro.sample("y", dist.Normal(m, 1.0), obs=jnp.zeros(4), obs_mask=jnp.arange(4) > 1)),
        "masked",
    ),
    "subsampled records": (in_plate(normal, subsample_size=2), "subsampled"),
    "subsampled groups": (group_plate(3, subsample_size=2), "subsampled"),
    "a subsampled plate without sites": (
        with_statement(lambda m: m + jnp.sum(numpyro.plate("index", 6, subsample_size=2)._indices)),
        "subsampled",
    ),
    "scan": (with_statement(scanned), "scan or cond"),
    "cond": (with_statement(lambda m: cond(m > 0, lambda v: v, lambda v: -v, m)), "scan or cond"),
    "factor": (in_plate(lambda m: (normal(m), numpyro.factor("f", -(m**2)))), "a factor, 'f'"),
    "param": (with_statement(lambda m: numpyro.param("a", 1.0) * m), "numpyro.param"),
    "random key": (with_statement(lambda m: jax.random.normal(numpyro.prng_key())), "a random key"),
    "Delta prior": (of_prior(lambda: dist.Delta(1.0)), "'theta', a point mass"),
    "Delta of an array": (of_prior(lambda: dist.Delta(jnp.ones(2)).to_event(1)), "'theta', a point mass"),
    "Delta records": (of_records(lambda m, s: dist.Delta(m)), "'y', a point mass"),
    "ImproperUniform records": (
        of_records(lambda m, s: dist.ImproperUniform(dist.constraints.real, (), ())),
        "'y', a ImproperUniform",
    ),
    "discrete prior": (of_prior(lambda: dist.Poisson(2.0)), "discrete parameter 'theta'"),
    "binary prior": (of_prior(lambda: dist.Bernoulli(0.3)), "discrete parameter 'theta'"),
    "unnormalised probabilities": (
        shares(lambda: dist.Gamma(2.0, 1.0).expand([3]).to_event(1), dist.Categorical),
        "'y', a CategoricalProbs whose probs",
    ),
    "Normal probability": (shares(lambda: dist.Normal(0.5, 1.0), dist.Bernoulli), "'y', a BernoulliProbs whose probs"),
    "Gamma probability": (shares(lambda: dist.Gamma(2.0, 40.0), dist.Bernoulli), "'y', a BernoulliProbs whose probs"),
    "almost positive scale": (
        shares(lambda: dist.Uniform(-0.001, 5.0), lambda p: dist.Normal(0.0, p)),
        "'y', a Normal whose scale",
    ),
    "Normal rate": (shares(lambda: dist.Normal(1.0, 1.0), dist.Poisson), "'y', a Poisson whose rate"),
    "weights of a mixture": (
        shares(
            lambda: dist.Gamma(2.0, 1.0).expand([2]).to_event(1),
            lambda p: dist.MixtureSameFamily(dist.Categorical(p), dist.Normal(jnp.array([0.0, 1.0]), 1.0)),
        ),
        "'y', a CategoricalProbs whose probs",
    ),
}


def programs() -> list[Program]:
    """All programs."""
    laws = [Program(f"records: {name}", of_records(law)) for name, law in RECORD_LAWS.items()]
    priors = [Program(f"prior: {name}", of_prior(law)) for name, law in PRIORS.items()]
    others = [Program(name, model) for name, model in (SHAPED | HANDLED).items()]
    fields = [Program(f"fields: {name}", model, ("x", "y")) for name, model in FIELDS.items()]
    refused = [Program(f"refused: {name}", *(model, ("y",), words)) for name, (model, words) in REFUSED.items()]
    return laws + priors + others + fields + refused
