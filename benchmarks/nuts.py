"""NumPyro's NUTS on the augmented model: parameters and latent records together, with the release as a factor."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions
from numpyro.infer import MCMC, NUTS

import dpjax
from problems.regression import INPUTS, STATISTIC


def augmented_model(value: jax.Array, scale: jax.Array) -> None:
    """The private regression, non-centred: 3 coefficients and 3 n standard normal residuals, 303 for n = 100."""
    n = INPUTS["n"]
    coef = numpyro.sample("coef", distributions.Normal(0.0, INPUTS["tau"]).expand([3]).to_event(1))
    noise = numpyro.sample("noise", distributions.Normal(0.0, 1.0).expand([3, n]).to_event(2))
    x = jnp.array(INPUTS["m"])[:, None] + noise[:2]
    y = coef[0] + coef[1:] @ x + jnp.sqrt(INPUTS["sigma2"]) * noise[2]
    total = jnp.sum(jax.vmap(STATISTIC, out_axes=1)({"x": x.T, "y": y}), axis=1)
    numpyro.factor("release", jnp.sum(distributions.Laplace(total, scale).log_prob(value)))


def build(release: dpjax.Release, chains: int, warmup: int, samples: int) -> tuple[Callable, Callable]:
    """``warm_up() -> state`` and ``draw(state) -> [chain, draw, 3]``, with all chains side by side."""
    options = {"num_chains": chains, "chain_method": "vectorized", "progress_bar": False}
    sampler = MCMC(NUTS(augmented_model), num_warmup=warmup, num_samples=samples, **options)
    # NumPyro finds its compiled programs again by the arguments, so these are plain arrays.
    arguments = (release.value, release.mechanism.scale)

    def warm_up() -> object:
        sampler.post_warmup_state = None
        sampler.warmup(jax.random.key(1), *arguments)
        return sampler.post_warmup_state

    def draw(state: object) -> np.ndarray:
        sampler.post_warmup_state = state
        sampler.run(jax.random.key(2), *arguments)
        return np.asarray(sampler.get_samples(group_by_chain=True)["coef"])

    return warm_up, draw
