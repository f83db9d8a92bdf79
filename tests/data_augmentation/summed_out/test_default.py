"""Which models' records are summed out by default, and whole runs by that default against grids that share no code."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import diagnostics, models
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.summed_out import imputation

SHORT = {"num_warmup": 300, "num_samples": 600, "progress": False}
NORMAL = models.normal(models.NormalPrior(0.0, 2.0), models.InverseGammaPrior(3.0, 2.0))
CELLS = models.categorical([1.0, 2.0, 1.0])


class OwnNormal(dpjax.Model):
    """As `NORMAL` with variance 1, by a user who gives no non-centred form."""

    def sample_prior(self, key):
        return {"mean": jax.random.normal(key)}

    def log_prior(self, parameters):
        return -jnp.square(parameters["mean"]) / 2

    def sample_records(self, key, parameters, n):
        return {"y": parameters["mean"] + jax.random.normal(key, (n,))}

    def log_density(self, parameters, records):
        return -jnp.square(records["y"] - parameters["mean"]) / 2

    def normal_field(self, parameters):
        return parameters["mean"], jnp.ones(())

    def update(self, key, parameters, records):
        return self.sample_prior(key)


def points(n: int) -> dpjax.LocalRelease:
    return dpjax.LocalRelease(np.linspace(-1.0, 1.0, n), dpjax.Laplace(1.0), "y")


def sums_out(model: Any, release: Any, **choices: Any) -> bool:
    """The default, without a run."""
    return augment(model, release, allow_counts=True, allow_sums=True, **choices).plan.sums_out


def test_an_exact_update_is_kept_for_few_records_and_where_rounding_is_large(monkeypatch):
    """Catches an exact update that is kept wherever there is one, and one that is always given up."""
    least = imputation.FEW_RECORDS + 1
    assert [sums_out(NORMAL, points(n)) for n in (least - 1, least)] == [False, True]
    monkeypatch.setattr(imputation, "MOST_ROUNDING", least * float(jnp.finfo(jnp.result_type(float)).eps))
    assert [sums_out(NORMAL, points(n)) for n in (least, least + 1)] == [True, False]


def test_parameters_that_may_be_bounded_keep_their_exact_update():
    """Catches gradients along parameters of which only the update knows where they can be."""
    assert not sums_out(OwnNormal(), points(90))
    assert sums_out(OwnNormal()._replace(update=None), points(90))


def test_probabilities_that_underflow_keep_their_exact_update():
    """Catches trajectories along logarithms of probabilities that are beyond what floats hold."""
    answers = dpjax.LocalRelease(np.arange(90) % 3, dpjax.RandomizedResponse(0.7, 4))
    assert [sums_out(models.categorical(np.full(4, each)), answers) for each in (0.01, 0.5)] == [False, True]


def test_sums_and_what_asks_for_records_impute_them():
    """Catches records that are summed out though a sum was released beside them, or though they are asked for."""
    answers = {"cell": (np.arange(90) % 3, dpjax.RandomizedResponse(0.5, 3))}
    table = dpjax.Release([30.0, 31.0, 28.0], dpjax.DiscreteLaplace(2.0), dpjax.statistics.cells("cell", 3), 90)
    assert sums_out(CELLS, dpjax.Microdata(answers))
    assert not sums_out(CELLS, dpjax.Microdata(answers, summed=table))
    assert not sums_out(CELLS, table)
    assert not sums_out(NORMAL, points(90), interweave=False)
    assert sums_out(NORMAL, points(90), parameter_kernel="hmc")


def check(draws: Any, mean: Any, deviation: Any) -> None:
    """Within four and a half standard errors, and deviations within a tenth."""
    found = np.asarray(draws, float)
    assert np.all(np.abs(found.mean((0, 1)) - mean) < 4.5 * diagnostics.mcse_mean(found))
    np.testing.assert_allclose(found.std((0, 1)), deviation, rtol=0.1)


def moments(log_weights: Any, *values: Any) -> list[tuple[float, float]]:
    """The mean and the deviation of each of some functions on a grid."""
    weights = special.softmax(log_weights)
    means = [np.sum(weights * value) for value in values]
    return [(mean, np.sqrt(np.sum(weights * (value - mean) ** 2))) for mean, value in zip(means, values, strict=True)]


ANSWERS = np.repeat([0, 1, 2], [20, 45, 15])
KEPT = dpjax.RandomizedResponse(0.5, 3)
RESPONSES = dpjax.LocalRelease(ANSWERS, KEPT, "cell")


@pytest.fixture(scope="module")
def shares() -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations of the shares of three answers, half of them true, by a grid on the triangle."""
    first, second = np.meshgrid(*[(np.arange(400) + 0.5) / 400] * 2, indexing="ij")
    inside = first + second < 1
    share = np.stack([first[inside], second[inside], 1 - (first + second)[inside]])
    log_weights = np.log(share[1]) + np.bincount(ANSWERS) @ np.log(0.5 * share + 0.25 * (1 - share))
    found = moments(log_weights, *share)
    return tuple(np.array(column) for column in zip(*found, strict=True))


@pytest.fixture(scope="module")
def responses() -> dpjax.Posterior:
    return dpjax.sample(jax.random.key(1), CELLS, RESPONSES, collect=records_of, **SHORT)


def records_of(state: Any) -> Any:
    return state.latent.records["cell"]


def test_randomized_responses_agree_with_a_grid(responses, shares):
    """Catches a map of probabilities to real numbers whose volume is left out, and weights of equal answers."""
    assert responses.plan.sums_out
    check(responses.draws["probabilities"], *shares)
    # Given the number of records in each cell, the shares are Dirichlet: their mean is known, and so that number's.
    of_records = np.stack([np.mean(responses.collected == cell, axis=-1) for cell in range(3)], axis=-1)
    expected = ((len(ANSWERS) + 4) * responses.draws["probabilities"] - [1, 2, 1]) / len(ANSWERS)
    difference = of_records - expected
    assert np.all(np.abs(difference.mean((0, 1))) < 4.5 * diagnostics.mcse_mean(difference))


def test_particles_and_batches_agree_with_the_grid(shares):
    """Catches a method of many runs whose default has sums of another release, or of none."""
    batch = dpjax.sample_batch(jax.random.key(2), CELLS, [RESPONSES, RESPONSES], **SHORT)
    assert batch.plan.sums_out
    for draws in batch.draws["probabilities"]:
        check(draws, *shares)
    settings = {"num_particles": 200, "num_islands": 4, "num_sweeps": 3, "progress": False}
    islands = dpjax.sample_smc(jax.random.key(3), CELLS, RESPONSES, **settings)
    found = islands.summary()["probabilities[0]"]
    assert abs(found["mean"] - shares[0][0]) < 4.5 * found["se_mean"]


def test_a_run_that_imputed_is_not_continued_by_one_that_sums(tmp_path):
    """Catches a checkpoint of imputed records that is read by a run of parameters alone."""
    file, settings = tmp_path / "run.npz", SHORT | {"num_warmup": 40, "num_samples": 20}
    dpjax.sample(jax.random.key(1), CELLS, RESPONSES, imputation=dpjax.imwg(), checkpoint=file, **settings)
    with pytest.raises(ValueError, match=r"checkpoint.*plan\.imputation"):
        dpjax.sample(jax.random.key(1), CELLS, RESPONSES, checkpoint=file, **settings)


def test_a_normal_behind_laplace_noise_agrees_with_a_grid():
    """Catches a mean and a variance that move by a likelihood of one of them alone."""
    values, number = np.array([-3.0, -0.5, 0.4, 1.0, 1.6, 5.0]), 12
    release = dpjax.LocalRelease(np.repeat(values, number), dpjax.Laplace(1.0), "y")
    start = {"mean": jnp.array([-4.0, 4.0, 0.0, 1.0]), "variance": jnp.array([0.1, 9.0, 1.0, 1.0])}
    posterior = dpjax.sample(jax.random.key(4), NORMAL, release, initial=start, **SHORT)
    assert posterior.plan.sums_out
    mean, log_variance = np.linspace(-1.0, 2.0, 61)[:, None, None], np.linspace(-3.0, 3.0, 91)[:, None]
    deviation, places = np.exp(log_variance / 2), np.linspace(-12.0, 14.0, 1_041)
    density = stats.norm.pdf(places, mean, deviation)
    likelihood = np.log(density @ stats.laplace.pdf(values, places[:, None])).sum(axis=-1) * number
    mean, log_variance = mean[..., 0], log_variance[..., 0]
    prior = stats.norm.logpdf(mean, 0.0, 2.0) + stats.invgamma.logpdf(np.exp(log_variance), 3.0, scale=2.0)
    found = moments(likelihood + prior + log_variance, mean, np.exp(log_variance))
    check(posterior.draws["mean"], *found[0])
    check(posterior.draws["variance"], *found[1])


def test_naive_bayes_with_impossible_levels_agrees_with_a_grid():
    """Catches impossible levels whose slopes are undefined, and classes and features that are not summed together."""
    possible = np.array([[[True, True, False], [False, True, True]]])
    model = models.naive_bayes([1.0, 1.0], np.ones((1, 2, 3)), possible)
    table = np.array([[22, 15, 6], [8, 20, 29]])
    classes, levels = (np.repeat(each.reshape(-1), table.reshape(-1)) for each in np.indices(table.shape))
    fields = {
        "class": (classes, dpjax.RandomizedResponse(0.7, 2)),
        "features": (levels[:, None], dpjax.RandomizedResponse(0.6, 3)),
    }
    posterior = dpjax.sample(jax.random.key(5), model, dpjax.Microdata(fields), **SHORT)
    assert posterior.plan.sums_out
    axis = (np.arange(60) + 0.5) / 60
    share, low, high = np.meshgrid(axis, axis, axis, indexing="ij")  # P(class 0), P(level 0 | 0), P(level 1 | 1)
    zero = np.zeros_like(share)
    joint = np.stack([share * low, share * (1 - low), zero, zero, (1 - share) * high, (1 - share) * (1 - high)])
    of_class = np.where(np.eye(2), 0.7, 0.3)
    of_level = np.where(np.eye(3), 0.6, 0.2)
    seen = np.tensordot(np.kron(of_class, of_level), joint, 1)
    found = moments(np.tensordot(table.reshape(-1), np.log(seen), 1), share, low, high)
    drawn = posterior.draws["class_probabilities"], posterior.draws["feature_probabilities"]
    check(drawn[0][..., 0], *found[0])
    check(drawn[1][..., 0, 0, 0], *found[1])
    check(drawn[1][..., 0, 1, 1], *found[2])
    assert np.all(drawn[1][..., 0, 0, 2] == 0)
