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
def test_relabelled_soma_meets_within_a_few_hundred_offers() -> None:
    """Equal indices need thousands of offers, and IMwG at least thirty times as many as they."""
    model, release = histogram()
    times = {}
    for name, imputation, relabel in (("relabelled", dpjax.soma(), True), ("equal", dpjax.soma(), False)):
        kernel = coupled_gibbs(model, release, imputation, relabel=relabel, offers=1)
        times[name] = meeting_times(jax.random.key(2), kernel, num_pairs=200, max_steps=200_000, batch_size=200)
        assert times[name].num_censored == 0
    assert times["relabelled"].times.mean() < 500
    assert times["equal"].times.mean() > 10 * times["relabelled"].times.mean()
    sweeps = coupled_gibbs(model, release, dpjax.imwg(), relabel=False)
    capped = meeting_times(jax.random.key(2), sweeps, num_pairs=50, max_steps=10_000, batch_size=50)
    offers = N * capped.times.mean()  # restricted at the cap, so a lower bound of the mean
    assert times["relabelled"].times.mean() < 0.03 * offers
