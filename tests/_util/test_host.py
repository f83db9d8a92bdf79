"""Blocks on the host beside an accelerator, and blocks on the devices within them; the CPU stands for the host here.

`test_lowering.py` counts what whole runs leave to the accelerator.
"""

import jax
import jax.numpy as jnp
import pytest

import dpjax
from dpjax._util import host, jit
from dpjax._util.host import chosen_device, on_devices, on_host
from dpjax.models.programs import jit_model
from dpjax.runtime.devices import default_devices, on_one_device

CPU = jax.devices("cpu")[0]


@pytest.fixture
def beside(monkeypatch) -> None:
    """As where there is an accelerator with a host."""
    monkeypatch.setattr(host, "host", lambda: CPU)


def present() -> jax.Device | None:
    """JAX's default device."""
    return jax.config.jax_default_device


def test_what_is_within_what(beside):
    """Blocks of one kind within the other, with the user's own default device around or not."""
    assert present() is None
    with on_host():
        assert present() == CPU
        assert chosen_device() is None
        with on_devices():
            assert present() is None
            with on_host(), on_host():
                assert present() == CPU
            assert present() is None
        with on_one_device():
            assert default_devices() == jax.local_devices()[:1]
        assert present() == CPU
    with jax.default_device(CPU), on_host():
        assert chosen_device() == CPU
    with on_devices():
        assert present() is None


def test_programs_run_where_they_are_said_to(beside, monkeypatch):
    """Of a model's function: three programs by what it is called by."""
    seen = []

    @jit_model
    def double(model, number):
        seen.append(present())
        return 2 * number

    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 1.0), variance=1.0)
    for call in (double.unoptimized, double.on_host, double):
        jax.clear_caches()
        with on_host():
            assert float(call(model, jnp.array(1.5))) == 3.0
    assert seen == [CPU, CPU, None]


def test_an_accelerator_without_a_host_compiles_quickly(monkeypatch):
    """JAX_PLATFORMS=cuda leaves the CPU out."""

    def missing(**_: object) -> list[jax.Device]:
        raise RuntimeError("Unknown backend cpu")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", missing)
    monkeypatch.setattr(host, "host", host.host.__wrapped__)
    assert host.host() is None
    assert not host.once_on_cpu()
    assert jit.quick_options.__wrapped__() == jit.QUICK_ELSEWHERE
    assert jit.light_options.__wrapped__() == {}
    with on_host():
        assert present() is None
