"""Models of NumPyro under JAX's checkers of numbers, and whose distributions do not add up."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax


def normal(n: int) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    scale = numpyro.sample("scale", dist.HalfNormal(2.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, scale))


@pytest.mark.x64
def test_no_number_that_is_none_leaves_a_program() -> None:
    """Some trajectories diverge while step sizes are fitted."""
    release = dpjax.Release([6.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", -5.0, 5.0), n=10)
    with jax.debug_nans(True):
        model = dpjax.from_numpyro(normal, records=("y",))
        posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=50, progress=False)
    assert np.all(np.isfinite(posterior.draws["scale"]))


class Unnormalised(dist.Distribution):
    """Of two values, without constraints that would tell."""

    support = dist.constraints.boolean
    has_enumerate_support = True

    def __init__(self, weight: jax.Array) -> None:
        self.weight = weight
        super().__init__(jnp.shape(weight))

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        return jax.random.bernoulli(key, 0.5, sample_shape + self.batch_shape).astype(jnp.result_type(int))

    def log_prob(self, value: jax.Array) -> jax.Array:
        return jnp.where(value == 1, jnp.log(self.weight), jnp.log(0.4))

    def enumerate_support(self, expand: bool = True) -> jax.Array:
        return jnp.arange(2).reshape((-1,) + (1,) * len(self.batch_shape))


@pytest.mark.x64
def test_probabilities_that_do_not_add_up_are_refused() -> None:
    def model(n: int) -> None:
        weight = numpyro.sample("weight", dist.Beta(2.0, 2.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", Unnormalised(weight))

    with pytest.raises(ValueError, match=r"^fn: given a model with .*total probability"):
        dpjax.from_numpyro(model, records=("y",))


def test_a_probability_that_is_a_real_number_is_refused_however_narrow_its_prior() -> None:
    def model(n: int) -> None:
        probability = numpyro.sample("probability", dist.Normal(0.5, 0.01))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Bernoulli(probability))

    with pytest.raises(ValueError, match=r"'y', a Bernoulli.* whose probs violates its constraint"):
        dpjax.from_numpyro(model, records=("y",))
