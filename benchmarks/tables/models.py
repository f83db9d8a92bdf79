"""Models of tables that are written in NumPyro, with releases that are simulated from them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import dpjax

SCALE = 5.0
"""Of the discrete Laplace noise on every count."""

CELLS = np.indices((2, 2, 3)).reshape(3, -1)
DESIGN = np.stack([CELLS[0], CELLS[1], CELLS[2] == 1, CELLS[2] == 2], axis=1).astype(float)
CLASSES, LEVELS = 2, 3


def loglinear(n: int) -> dpjax.Model:
    """The main effects of a table of 2 by 2 by 3 cells."""

    def program() -> None:
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
        with numpyro.plate("records", n):
            numpyro.sample("cell", dist.Categorical(logits=jnp.asarray(DESIGN) @ effect))

    return dpjax.from_numpyro(program, records=("cell",))


def naive_bayes(n: int) -> dpjax.Model:
    """Two classes, and two features of three levels that are independent within a class."""

    def program() -> None:
        share = numpyro.sample("share", dist.Beta(2.0, 2.0))
        names = ("first", "second")
        levels = [numpyro.sample(f"{name}_levels", dist.Dirichlet(jnp.ones((CLASSES, LEVELS)))) for name in names]
        with numpyro.plate("records", n):
            label = numpyro.sample("label", dist.Bernoulli(share))
            for name, law in zip(names, levels, strict=True):
                numpyro.sample(name, dist.Categorical(law[label]))

    return dpjax.from_numpyro(program, records=("label", "first", "second"))


def pairs_with_label(record: dict[str, Any]) -> jax.Array:
    """How often each level of either feature occurs with each class [12]."""
    places = [record["label"] * LEVELS + record[name] for name in ("first", "second")]
    return jnp.concatenate([jax.nn.one_hot(place, CLASSES * LEVELS, dtype=int) for place in places])


MODELS: dict[str, tuple[Callable[[int], dpjax.Model], Any]] = {
    "log-linear": (loglinear, dpjax.statistics.cells("cell", 12)),
    "naive Bayes": (naive_bayes, pairs_with_label),
}


def build(name: str, n: int) -> tuple[dpjax.Model, dpjax.Release]:
    """A model, and a release of n records that it drew."""
    make, statistic = MODELS[name]
    model = make(n)
    parameter_key, record_key, noise_key = jax.random.split(jax.random.key(19), 3)
    records = model.sample_records(record_key, model.sample_prior(parameter_key), n)
    mechanism = dpjax.DiscreteLaplace(SCALE)
    exact = jnp.sum(jax.vmap(statistic)(records), axis=0)
    return model, dpjax.Release(mechanism.sample(noise_key, exact.astype(float)), mechanism, statistic, n)
