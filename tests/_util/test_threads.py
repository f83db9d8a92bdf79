"""Linear algebra has one thread while chains run, and its own number before and after."""

import os
from pathlib import Path

import jax
import pytest
from threadpoolctl import threadpool_limits

import dpjax
from dpjax import __main__, models, statistics
from dpjax._util.threads import count_blas_threads, one_blas_thread


def fail_inside() -> None:
    with one_blas_thread():
        assert count_blas_threads() == 1
        raise RuntimeError


def test_the_number_of_threads_is_restored_even_after_an_error() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = count_blas_threads()
        with pytest.raises(RuntimeError):
            fail_inside()
        assert count_blas_threads() == before


@pytest.mark.x64
def test_chains_run_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of the loop is watched; before, it had the threads of the process."""
    seen = []

    def next_length(made: int, seconds: float) -> int:
        seen.append(count_blas_threads())
        return 100

    monkeypatch.setattr("dpjax.runtime.run.next_length", next_length)
    model = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
    release = dpjax.Release([1.0], dpjax.Laplace(2.0), statistics.total("y", -3.0, 3.0), 20)
    with threadpool_limits(limits=2, user_api="blas"):
        dpjax.sample(jax.random.key(0), model, release, num_chains=1, num_warmup=0, num_samples=3, progress=False)
    assert set(seen) == {1}


def test_the_doctor_reports(capsys: pytest.CaptureFixture[str]) -> None:
    __main__.main(["doctor"])
    printed = capsys.readouterr().out
    for word in ("jaxlib", "devices:", "threads:", "precision:", "compiled programs:"):
        assert word in printed
    assert ("jax_enable_x64" in printed) != jax.config.jax_enable_x64


def test_the_doctor_sees_what_gets_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "ACCELERATORS", (__file__,))
    monkeypatch.setattr(__main__, "PACKAGES", ("no-such-package",))
    with jax.debug_nans(True):
        printed = __main__.describe_environment()
    assert "jax_debug_nans is on" in printed
    assert "no-such-package missing" in printed
    assert ("an accelerator that JAX does not use" in printed) == (jax.default_backend() == "cpu")


def test_the_doctor_tries_the_folder_for_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(__main__, "program_folder", lambda: str(tmp_path / "new" / "folder"))
    assert __main__.can_keep_programs()
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    assert not __main__.can_keep_programs()
