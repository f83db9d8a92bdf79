"""Programs that run once are compiled quickly, and JAX's cache is turned on only where the user has set none."""

import re
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax._util import jit
from dpjax._util.jit import compiling, jit_unoptimized, light_options, quick_options
from dpjax.models.programs import jit_model

SETTINGS = ("jax_compilation_cache_dir", jit.MIN_COMPILE_TIME)
SLOW_PARTS = re.compile(
    r"^from scipy(\.stats|\.optimize|\.spatial)?.* import .*\b(stats|optimize|spatial|qmc|brentq|milp)\b"
)


@pytest.fixture
def unset(monkeypatch, tmp_path):
    """JAX as it is before anyone set anything, with the user's folder for caches elsewhere."""
    before = {name: jax.config.values[name] for name in SETTINGS}
    jax.config.update(SETTINGS[0], None)
    jax.config.update(SETTINGS[1], jit.DEFAULT_MIN_COMPILE_TIME)
    monkeypatch.delenv(jit.MIN_COMPILE_TIME.upper(), raising=False)
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path / "caches")
    yield tmp_path / "caches"
    for name, value in before.items():
        jax.config.update(name, value)


@partial(jit_unoptimized, static_argnames=("power",))
def total(array, power):
    return jnp.sum(jnp.exp(array) ** power)


def test_quickly_compiled_programs_compute_the_same():
    array = jnp.linspace(0.0, 1.0, 7)
    expected = np.sum(np.exp(np.asarray(array)) ** 3)
    np.testing.assert_allclose(total(array, power=3), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(partial(total, power=3))(array), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(partial(total, power=3))(array[None]), [expected], rtol=1e-6)


def test_a_program_of_a_model_can_be_compiled_quickly():
    @jit_model
    def prior(model, parameters):
        return model.log_prior(parameters)

    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 1.0), variance=1.0)
    at = {"mean": jnp.asarray(0.5)}
    np.testing.assert_allclose(prior.unoptimized(model, at), prior(model, at), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda at: prior.unoptimized(model, at))(at), prior(model, at), rtol=1e-6)


def test_a_program_compiles_while_something_else_is_done(compilations):
    program, array = jax.jit(lambda array: jnp.sin(array) @ jnp.cos(array)), jnp.ones(5)
    with compiling(program.lower(array)):
        pass
    before = len(compilations)
    program(array)
    assert len(compilations) == before > 0


def test_a_failed_compilation_ahead_is_left_to_the_call():
    class Lowered:
        def compile(self):
            raise RuntimeError("no such target")

    with compiling(Lowered()):
        pass
    with pytest.raises(ValueError, match="no start"), compiling(None):
        raise ValueError("no start")


def test_options_that_a_version_lacks_are_left_out(monkeypatch):
    assert set(quick_options()) <= set(jit.QUICK)
    assert set(light_options()) <= set(jit.LIGHT)
    assert not jit.is_known("xla_no_such_option", 1)
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    assert light_options.__wrapped__() == {}


def test_options_that_the_user_has_set_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(jit, "is_known", lambda name, value: True)
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=1 --xla_force_host_platform_device_count=2")
    assert light_options.__wrapped__() == {"xla_cpu_use_fusion_emitters": False}
    monkeypatch.delenv("XLA_FLAGS")
    assert light_options.__wrapped__() == jit.LIGHT


def test_the_cache_is_turned_on_where_none_is_set(unset):
    assert dpjax.enable_compilation_cache() == unset / "dpjax"
    assert (unset / "dpjax").is_dir()
    assert [jax.config.values[name] for name in SETTINGS] == [str(unset / "dpjax"), 0.0]


def test_what_the_user_has_set_stays(unset, tmp_path):
    jax.config.update(SETTINGS[1], 0.5)
    dpjax.enable_compilation_cache()
    assert jax.config.values[SETTINGS[1]] == 0.5
    jax.config.update(SETTINGS[0], str(tmp_path / "own"))
    assert dpjax.enable_compilation_cache() == tmp_path / "own"
    assert jax.config.values[SETTINGS[0]] == str(tmp_path / "own")


def test_a_folder_that_cannot_be_made_is_refused(unset):
    unset.write_text("a file")
    with pytest.raises(OSError, match=r"folder for caches: given .*; expected a folder that can be written to"):
        dpjax.enable_compilation_cache()
    assert not jax.config.values[SETTINGS[0]]


@pytest.mark.parametrize(("platform", "part"), [("linux", "ours"), ("win32", "Local"), ("darwin", "Library")])
def test_every_system_has_a_folder_for_caches(monkeypatch, platform, part):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("XDG_CACHE_HOME", "ours")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert part in jit.cache_folder().parts


def test_parts_of_scipy_that_take_long_to_import_wait_until_they_are_used():
    """They are reached as attributes of scipy, which imports them then."""
    files = [
        path for path in Path(dpjax.__file__).parent.rglob("*.py") if not {"adapters", "demo", "plot"} & set(path.parts)
    ]
    assert [path.name for path in files if any(map(SLOW_PARTS.search, path.read_text().splitlines()))] == []
