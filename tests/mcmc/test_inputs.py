"""Bad input is refused before compilation, with the argument, what was given, what was expected and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.data_augmentation.records import soma
from dpjax.mcmc import sample
from dpjax.mechanisms import RandomizedResponse
from dpjax.models import categorical
from dpjax.release import LocalRelease


def raw_key(key):
    return jax.random.PRNGKey(0)


BAD = [
    ({"key": jax.random.key_data}, TypeError, "key: given an array of uint32 .*one typed key.*jax.random.key"),
    ({"key": lambda key: jax.random.split(key, 2)}, TypeError, r"key: given .*shape \(2,\)"),
    ({"key": lambda key: 3}, TypeError, "key: given 3"),
    ({"num_chains": 0}, ValueError, "num_chains: given 0; expected a whole number >= 1"),
    ({"num_chains": 2.0}, TypeError, "num_chains: given 2.0 of type float"),
    ({"num_warmup": -1}, ValueError, "num_warmup: given -1; expected a whole number >= 0"),
    ({"num_samples": 0}, ValueError, "num_samples: given 0"),
    ({"num_samples": True}, TypeError, "num_samples: given True of type bool"),
    ({"thin": 0}, ValueError, "thin: given 0; expected a whole number >= 1. Pass 1 to keep every draw"),
    ({"num_samples": 2**30, "thin": 2}, ValueError, "num_samples: given .*fewer than 2147483648 steps"),
    ({"collect": "records"}, TypeError, "collect: given 'records'; expected a function or None"),
    (
        {"collect": lambda state: state.latent.records["counts"]},
        ValueError,
        r"collect: given a function that failed with KeyError: 'counts'; .* fields \['y'\]; it has counts where counts",
    ),
    ({"collect": lambda state: "records"}, ValueError, "collect: given a function that failed with TypeError"),
    ({"progress": "no"}, TypeError, "progress: given 'no'; expected True, False or 'lines'"),
    ({"initial": [1.0]}, TypeError, r"initial: given list; expected a dict of \['mean'\]"),
    (
        {"initial": {"sd": np.zeros(4)}},
        ValueError,
        r"initial: given a dict of \['sd'\]; expected a dict of \['mean'\]",
    ),
    ({"initial": {"mean": 0.0}}, ValueError, r"initial\['mean'\]: given shape \[\]; expected shape \[4\]"),
    ({"initial": {"mean": np.zeros((4, 2))}}, ValueError, r"initial\['mean'\]: given shape \[4, 2\]"),
    (
        {"initial": {"mean": [0, 0, np.nan, 0]}},
        ValueError,
        r"initial\['mean'\]: given .*nan.*; expected finite numbers",
    ),
    (
        {"initial": "posterior"},
        ValueError,
        r"initial: given 'posterior'; expected parameters .*, 'large-sample' or None",
    ),
    (
        {"initial": "large-sample"},
        ValueError,
        r"initial: given 'large-sample', which dpjax.sample_clt refuses \(model: given .*\); expected",
    ),
    ({"initial": {"mean": ["a"] * 4}}, TypeError, r"initial\['mean'\]: given an array of <U1; expected finite numbers"),
    ({"checkpoint": 3}, TypeError, "checkpoint: given 3; expected a path"),
    (
        {"checkpoint": "/no/such/folder/run.npz"},
        ValueError,
        "checkpoint: given .*; expected a file in an existing folder",
    ),
    ({"checkpoint": "/"}, ValueError, "checkpoint: given the folder '/'; expected a regular file"),
    ({"imputation": 3}, TypeError, "imputation: given 3"),
    ({"release": lambda release: release.value}, TypeError, "release: given .*; expected a Release or LocalRelease"),
]


@pytest.fixture
def nothing_compiles(compilations):
    """Fail where a program of any size is compiled: arrays may still be moved and keys read."""
    yield
    assert not {f"jit({name})" for name in ("advance_chains", "search", "tune_to_prior", "probe")} & set(compilations)


@pytest.mark.parametrize(("changes", "error", "message"), BAD)
def test_bad_input(nothing_compiles, model, release, changes, error, message):
    arguments = {"key": jax.random.key(0), "model": model._replace(), "release": release, "progress": False, **changes}
    for name, value in (("key", jax.random.key(0)), ("release", release)):
        if callable(changes.get(name)):
            arguments[name] = changes[name](value)
    with pytest.raises(error, match=message):
        sample(**arguments)


def test_model_and_release_exchanged(nothing_compiles, model, release):
    with pytest.raises(TypeError, match=r"release: given \w+.*Pass \(model, release\)"):
        sample(jax.random.key(0), release, model)


def test_initial_outside_the_support_of_the_prior(model, release):
    positive = model._replace(log_prior=lambda parameters: jnp.where(parameters["mean"] > 0, 0.0, -jnp.inf))
    with pytest.raises(ValueError, match=r"initial: given parameters of zero prior density in chains \[1, 3\]"):
        sample(jax.random.key(0), positive, release, initial={"mean": np.array([1.0, -1, 1, -1])})


def test_a_derived_quantity_needs_a_name_of_its_own(nothing_compiles, model, release):
    clashing = model._replace(derived=lambda parameters: {"mean": 2 * parameters["mean"]})
    with pytest.raises(ValueError, match=r"model.derived: given names \['mean'\]"):
        sample(jax.random.key(0), clashing, release)


@pytest.mark.parametrize("attempts", [None, 8, "auto"])
def test_soma_refuses_a_local_release(attempts):
    release = LocalRelease(np.array([0, 1, 1]), RandomizedResponse(keep=0.9, num_categories=2), field="cell")
    with pytest.raises(TypeError, match=r"imputation: given soma.* with a LocalRelease"):
        sample(jax.random.key(0), categorical(concentration=np.ones(2)), release, imputation=soma(attempts))
