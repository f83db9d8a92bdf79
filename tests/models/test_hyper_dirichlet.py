"""Hyper-Dirichlet priors of tables: against Dirichlet draws and sums over all data sets, made by NumPy on its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models
from dpjax.models.hyper_dirichlet import HyperDirichlet
from tests.tools import perfect_start
from tests.tools.three_columns import EVERY, SIZES, VALUE, N, check_means, release_of

MODEL = models.hyper_dirichlet(SIZES, [("a", "b"), ("b", "c")], prior_number=6.0)


def by_numpy(number: int) -> np.ndarray:
    """Log-probabilities [draw, 8] of all combinations: P(a, b) is Dirichlet, and so is P(c | b) with P(b) as given."""
    rng = np.random.default_rng(5)
    pairs = rng.dirichlet([6 / 4] * 4, number).reshape(-1, 2, 2)
    third = rng.dirichlet([6 / 4] * 2, (number, 2))
    a, b, c = EVERY.T
    return np.log(pairs[:, a, b] * third[:, b, c])


def shares_of(draws: dict) -> np.ndarray:
    """The probabilities [draw, 8] of all combinations at draws of the parameters."""
    every = {name: jnp.asarray(EVERY[:, place]) for place, name in enumerate("abc")}
    return np.exp(jax.jit(jax.vmap(lambda one: MODEL.log_density(one, every)))(draws))


def test_the_prior_is_the_same_whichever_column_comes_first() -> None:
    """Catches concentrations that do not add up to one number in all tables, of which the shared margin would tell."""
    keys = jax.random.split(jax.random.key(1), 20_000)
    drawn = shares_of(jax.jit(jax.vmap(MODEL.sample_prior))(keys))
    expected = np.exp(by_numpy(20_000))
    for place in range(8):
        assert stats.ks_2samp(drawn[:, place], expected[:, place]).pvalue > 1e-3, place


def test_the_summary_and_the_density_of_the_update_say_as_much_as_records() -> None:
    """Tables of three columns and columns in none: rows of one table looked up in another show in the densities."""
    model = models.hyper_dirichlet({"a": 2, "b": 3, "c": 2, "d": 4}, [("c", "a", "b"), ("b", "c")], 20.0)
    one, other = (model.sample_prior(jax.random.key(number)) for number in (2, 3))
    records = model.sample_records(jax.random.key(4), one, 40)
    whole = model.log_density(one, records).sum()
    np.testing.assert_allclose(model.log_likelihood(one, model.summarize(records)), whole, rtol=1e-4)
    posterior = [model.update_log_density(at, one, records) - model.log_joint(at, records) for at in (one, other)]
    np.testing.assert_allclose(*posterior, rtol=1e-3)
    noise = model.noncentred.noise(jax.random.key(5), one, records)
    for name, level in model.noncentred.records(one, noise).items():
        np.testing.assert_array_equal(level, records[name])
    outside = {name: jnp.array([-1, size]) for name, size in zip(model.cells.fields, model.cells.sizes, strict=True)}
    assert model.log_density(one, outside).tolist() == [-np.inf, -np.inf]


@pytest.mark.x64
@pytest.mark.parametrize("way", ["records", "records without interweaving", "counts"])
def test_the_posterior_is_that_of_all_data_sets(way: str) -> None:
    """From noisy tables to margins of few records, and with the probabilities integrated out of the counts."""
    run = {"num_warmup": 300, "num_samples": 1_500, "progress": False}
    run |= {"imputation": dpjax.counts() if way == "counts" else dpjax.imwg(), "interweave": way == "records"}
    if way == "counts":
        del run["interweave"]
    posterior = dpjax.sample(jax.random.key(6), MODEL, release_of(VALUE, N), **run)
    check_means(posterior.margin("a", "b", "c").draws.reshape(4, -1, 8), by_numpy(20_000))


class Given(HyperDirichlet):
    """A planted fault: the number of the prior is that of each cell, and not of each table."""

    def given(self, counts: jax.Array) -> dict:
        concentrations = self.concentrations
        return {name: one - concentrations[name] + self.number for name, one in super().given(counts).items()}


@pytest.mark.parametrize("kind", [HyperDirichlet, Given])
def test_the_joint_law_is_invariant(kind: type) -> None:
    """Perfect starts: probabilities keep their prior, with either form."""
    model = kind(MODEL.number, MODEL.cells, MODEL.plan, MODEL.interweaves)
    replicates = perfect_start.run(jax.random.key(11), model, release_of(VALUE, 12), dpjax.imwg(), num_chains=2_000)
    p_values = []
    for name, leaf in replicates.parameters.items():
        law = stats.beta(6 / 4, 6 / 4) if leaf.ndim == 3 else stats.beta(3, 3)
        p_values.append(stats.kstest(leaf[:, 0, 0] if leaf.ndim == 3 else leaf[:, 0], law.cdf).pvalue)
        assert name in MODEL.names
    assert (min(p_values) * 3 > perfect_start.REJECT) == (kind is HyperDirichlet)


@pytest.mark.parametrize(
    ("tables", "number", "message"),
    [
        ([("a", "b"), ("b", "c"), ("a", "c")], 1.0, r"tables: .* cycle.*Add the table \('a', 'b', 'c'\)"),
        ([("a", "z")], 1.0, r"tables\[0\]"),
        ([("a",)], 0.0, "prior_number"),
        ([("a",)], [1.0, 2.0], "prior_number"),
    ],
)
def test_bad_input_is_named(tables: list, number: object, message: str) -> None:
    """Each refusal of its own."""
    with pytest.raises((TypeError, ValueError), match=message):
        models.hyper_dirichlet(SIZES, tables, number)
