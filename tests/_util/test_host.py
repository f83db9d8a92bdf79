"""Programs that run once run on the host beside accelerators, and the accelerator compiles those of many steps alone.

The CPU stands for the host here; what is compiled while it is JAX's default device would be compiled for the host.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax._util import host, jit
from dpjax._util.host import chosen_device, on_devices, on_host
from dpjax.models.programs import jit_model
from dpjax.runtime.devices import default_devices, on_one_device
from dpjax.runtime.run import Run

CPU = jax.devices("cpu")[0]


@pytest.fixture
def beside(monkeypatch) -> None:
    """As where there is an accelerator with a host."""
    monkeypatch.setattr(host, "host", lambda: CPU)


@pytest.fixture
def for_the_device() -> Iterator[list[str]]:
    """The names of the programs that are compiled for the accelerator."""
    names: list[str] = []

    def listen(event: str, seconds: float, **details: object) -> None:
        if event.endswith("backend_compile_duration") and present() is None:
            names.append(str(details["fun_name"]))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def present() -> jax.Device | None:
    """JAX's default device."""
    return jax.config.jax_default_device


def visits(n, y=None):
    rate = numpyro.sample("rate", dist.Gamma(5.0, 1.0))
    with numpyro.plate("weeks", n):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


class Started(Exception):
    """The first chunk is asked for."""


def start(monkeypatch, model, release) -> None:
    """A run of `dpjax.sample` up to its first chunk."""

    def stop(self, status, length):
        raise Started

    monkeypatch.setattr(Run, "make_chunk", stop)
    with pytest.raises(Started):
        dpjax.sample(jax.random.key(1), model, release, num_chains=2, num_warmup=0, num_samples=1, progress=False)


def test_of_a_summed_out_run_the_device_compiles_the_chunk_alone(beside, for_the_device, monkeypatch):
    """No other test counts the programs before the first draw, each of which an accelerator compiles for long."""
    model = dpjax.from_numpyro(visits, ["y"])
    release = dpjax.LocalRelease(np.array([5, 3, -4]), dpjax.DiscreteLaplace(2.0), "y")
    for_the_device.clear()
    start(monkeypatch, model, release)
    assert for_the_device == []


def test_of_a_run_with_records_the_device_compiles_the_chunk_alone(beside, for_the_device, monkeypatch):
    """The chunk is compiled while starts are looked for."""
    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    for_the_device.clear()
    start(monkeypatch, model, release)
    assert for_the_device == ["jit(advance_chains)"]


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
