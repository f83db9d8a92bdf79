"""Results can be pickled: what they are made of is built again where that can be, and else missed by name."""

import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from tests.posterior.importable import first_field, normal_model

SHORT = {"num_warmup": 20, "num_samples": 10, "num_chains": 2, "progress": False}
TOTAL = dpjax.Release([12.0], dpjax.Laplace(8.0), statistics.total("y", -10.0, 10.0), n=10)


def shipped():
    return models.normal(models.NormalPrior(0.0, 5.0), variance=4.0), TOTAL


def table():
    counts = dpjax.Release([3.0, 4.0, 5.0], dpjax.Laplace(1.0), statistics.cells("cell", 3), n=12)
    return models.categorical([1.0, 1.0, 1.0]), counts


def tiny_concentrations():
    """A shipped model that is compiled by itself."""
    return models.categorical([1e-4, 1.0, 1.0]), table()[1]


def of_numpyro():
    release = dpjax.Release([12.0], dpjax.Gaussian(8.0), first_field, n=10)
    return dpjax.from_numpyro(normal_model, records=("y",)), release


WHOLE = {"shipped": shipped, "table": table, "compiled by itself": tiny_concentrations, "NumPyro": of_numpyro}

LONG = ("table", "compiled by itself")


def assert_same_draws(one, other):
    for name, leaf in one.draws.items():
        np.testing.assert_array_equal(leaf, other.draws[name])
    for name, leaf in one.info.items():
        np.testing.assert_array_equal(leaf, other.info[name])


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in WHOLE])
def test_a_posterior_comes_back_whole_from_a_pickle(name):
    model, release = WHOLE[name]()
    posterior = dpjax.sample(jax.random.key(1), model, release, **SHORT)
    again = pickle.loads(pickle.dumps(posterior))
    assert_same_draws(posterior, again)
    assert again.describe() == posterior.describe()
    assert str(again.summary()) == str(posterior.summary())
    one, other = (each.predict(jax.random.key(2)).values for each in (posterior, again))
    np.testing.assert_allclose(one, other, rtol=1e-5)
    assert again.final_states.latent.log_density.shape == (2,)
    more = dpjax.sample(jax.random.key(3), again.model, again.release, **SHORT)
    assert dpjax.Posterior.concat([again, more]).info["acceptance_rate"].shape == (4, 10)


def local_model():
    """A model of the user's own whose functions no module has by name."""
    model, release = shipped()
    return model._replace(derived=lambda parameters: {"twice": 2 * parameters["mean"]}), release


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*(effective sample size|R-hat)")
def test_what_cannot_be_pickled_is_left_out_and_missed_by_name():
    model, release = local_model()
    posterior = dpjax.sample(jax.random.key(1), model, release, **SHORT)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(posterior))))
    assert_same_draws(posterior, again)
    assert str(again.summary()) == str(posterior.summary())
    assert "no model, which was left out" in again.describe()
    message = (
        r"model: given a result that came from a pickle or file without it \(it could not be written: "
        r".*dataclasses\.replace"
    )
    for ask in (lambda: again.predict(jax.random.key(2)), lambda: again.model.log_prior):
        with pytest.raises(ValueError, match=message):
            ask()
    with pytest.raises(ValueError, match=message):
        dpjax.Posterior.concat([again, dpjax.sample(jax.random.key(2), model, release, **SHORT)])
    whole = replace(again, model=model)
    np.testing.assert_array_equal(whole.predict(jax.random.key(2)).values, posterior.predict(jax.random.key(2)).values)


@pytest.mark.x64
def test_a_statistic_without_a_name_is_missed_by_name():
    model, release = shipped()
    release = dpjax.Release(release.value, release.mechanism, lambda record: record["y"][None], n=10)
    again = pickle.loads(pickle.dumps(dpjax.sample(jax.random.key(1), model, release, **SHORT)))
    for ask in (lambda: again.predict(jax.random.key(2)), lambda: again.released):
        with pytest.raises(ValueError, match="release: given a result that came from a pickle or file without it"):
            ask()


def test_what_has_gone_where_a_pickle_is_read_is_missed_by_name(monkeypatch):
    model, release = of_numpyro()
    content = pickle.dumps(dpjax.sample(jax.random.key(1), model, release, **SHORT))
    monkeypatch.delattr("tests.posterior.importable.normal_model")
    again = pickle.loads(content)
    assert again.draws["mean"].shape == (2, 10)
    with pytest.raises(ValueError, match=r"model: given .* could not be read: AttributeError"):
        again.predict(jax.random.key(2))


def test_copies_keep_what_pickles_cannot():
    model, release = local_model()
    posterior = dpjax.sample(jax.random.key(1), model, release, **SHORT)
    for copied in (copy.copy(posterior), copy.deepcopy(posterior)):
        assert copied.model is model
        assert_same_draws(posterior, copied)
    assert copy.deepcopy(posterior).draws["mean"] is not posterior.draws["mean"]


@pytest.mark.x64
def test_batches_can_be_pickled():
    model, release = shipped()
    batch = dpjax.sample_batch(jax.random.key(1), model, [release, release], **SHORT)
    again = pickle.loads(pickle.dumps(batch))
    np.testing.assert_array_equal(again[1].draws["mean"], batch[1].draws["mean"])
    assert again[1].predict(jax.random.key(2), 3).values.shape == (3, 1)


READ = """
import pickle, sys
import jax
posterior = pickle.load(open(sys.argv[1], "rb"))
print(posterior.draws["mean"].shape, posterior.predict(jax.random.key(2), 3).values.shape)
"""


@pytest.mark.slow
def test_another_process_reads_a_pickle(tmp_path):
    model, release = shipped()
    path = tmp_path / "posterior.pickle"
    path.write_bytes(pickle.dumps(dpjax.sample(jax.random.key(1), model, release, **SHORT)))
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", READ, path], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout == "(2, 10) (3, 1)\n"
