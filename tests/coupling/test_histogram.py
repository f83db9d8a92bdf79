"""The perturbed histogram of Xiong and Ju (2025), Appendix B.1: how soon two chains meet."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.coupling import coupled_gibbs, meeting_times

N, EPSILON, BINS = 20, 5.0, 10


def histogram() -> tuple[dpjax.Model, dpjax.Release]:
    """Uniform records and a release of their histogram, Laplace noise of scale 2 / ε."""
    uniform = models.beta(1.0, 1.0)._replace(
        sample_records=lambda key, parameters, n: {"y": jax.random.uniform(key, (n,), float)}
    )
    statistic = statistics.histogram("y", tuple(np.linspace(0.0, 1.0, BINS + 1)))
    template = dpjax.Release(jnp.zeros(BINS), dpjax.Laplace(2 / EPSILON), statistic, N)
    records_key, noise_key = jax.random.split(jax.random.key(1))
    return uniform, template.sample(noise_key, uniform.sample_records(records_key, {}, N))


@pytest.mark.slow
def test_relabelled_soma_meets_within_a_few_hundred_proposals() -> None:
    """Equal indices need thousands of proposals: their mean, restricted at the cap, is a lower bound."""
    model, release = histogram()
    means = {}
    for relabel in (True, False):
        kernel = coupled_gibbs(model, release, dpjax.soma(), relabel=relabel, proposals=1)
        meetings = meeting_times(jax.random.key(2), kernel, num_pairs=100, max_steps=20_000, batch_size=100)
        means[relabel] = meetings.times.mean()
    assert 100 < means[True] < 500
    assert means[False] > 7_000
