"""Chains spread over devices and processes make the draws that they make on one device; what cannot be spread."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import jax
import numpy as np
import pytest

from dpjax.runtime.devices import any_device, check_devices, choose_mesh, place, same_everywhere, share_evenly, to_host
from tests.runtime.spread_runs import met

ROOT = Path(__file__).parents[2]
SINGLE = os.environ.get("DPJAX_TEST_FLOAT32") == "1"
TOLERANCE = 1e-3 if SINGLE else 1e-9
"""Of many steps, each rounded by programs for other numbers of chains."""


def run(path: Path, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.runtime.spread_runs", str(path), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def check(path: Path, *, num_runs: int) -> None:
    """Raise unless each run made the same draws on all devices, and after an interruption, as on one."""
    with np.load(path) as arrays:
        compared = [name.removesuffix("]").split(" [") for name in arrays if name.endswith("]")]
        counted = {(way, name.partition(",")[0]) for name, way in compared}
        assert [sum(way == each for way, _ in counted) for each in ("shared", "continued")] == [num_runs, 3]
        for name, way in compared:
            found = arrays[f"{name} [{way}]"]
            np.testing.assert_allclose(found, arrays[name], rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"{name}, {way}")


@pytest.mark.slow
def test_eight_devices_make_the_draws_of_one(tmp_path):
    process = run(tmp_path / "draws.npz", "8")
    _, error = process.communicate()
    assert process.returncode == 0, error
    check(tmp_path / "draws.npz", num_runs=7 - SINGLE)


@pytest.mark.slow
def test_two_processes_make_the_draws_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    paths = [tmp_path / f"{number}.npz" for number in range(2)]
    processes = [run(path, "4", address, str(number), "2") for number, path in enumerate(paths)]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    for path in paths:
        check(path, num_runs=6 - SINGLE)


@pytest.mark.x64
def test_a_shared_program_on_one_device_makes_the_same_draws():
    alone, shared = dict(met(None)), dict(met(jax.devices()[:1]))
    for name in alone:
        np.testing.assert_allclose(shared[name], alone[name], rtol=TOLERANCE, atol=TOLERANCE)


def test_one_device_needs_no_mesh():
    assert choose_mesh(None, 4) is None
    assert share_evenly(None, 5, "pairs") == (None, 5)
    assert choose_mesh(1, 4).devices.tolist() == jax.local_devices()[:1]


def test_arguments_keep_their_values_and_plain_numbers_their_type():
    given = {"chains": np.arange(3.0), "scale": 2.0, "keys": jax.random.split(jax.random.key(1), 3)}
    assert place(None, given, by_chain=("chains",)) is given
    placed = place(choose_mesh(1, 3), given, by_chain=("chains", "keys"))
    assert placed["scale"] == 2.0
    assert isinstance(placed["scale"], float)
    np.testing.assert_array_equal(to_host(placed["chains"]), given["chains"])
    np.testing.assert_array_equal(*(jax.random.key_data(each["keys"]) for each in (placed, given)))
    assert same_everywhere(choose_mesh(1, 3), 5) == 5
    assert any_device(None, True)


@pytest.mark.parametrize(
    ("devices", "error", "message"),
    [
        (0, ValueError, "whole number >= 1"),
        (True, TypeError, "of type bool"),
        ("gpu", TypeError, "how many of this process's devices"),
        (10_000, ValueError, "the devices of this process"),
        ([], TypeError, "a list of jax.Device"),
        ([0], TypeError, "a list of jax.Device"),
        (jax.devices()[:1] * 2, ValueError, "different devices"),
    ],
)
def test_what_is_no_device_is_refused_by_name(devices, error, message):
    with pytest.raises(error, match=rf"^devices: given .*{message}"):
        choose_mesh(devices, 4)


def test_devices_of_some_processes_among_more_are_refused(monkeypatch):
    """What processes decide alike goes through all of them."""
    several = [Mock(spec=jax.Device, platform="cpu", process_index=number) for number in range(2)]
    assert check_devices(several[:1]) == several[:1]
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    with pytest.raises(ValueError, match=r"^devices: given devices of 2 processes of 3; expected those of one"):
        check_devices(several)


def test_devices_that_cannot_share_the_chains_are_refused(monkeypatch):
    several = [*jax.devices("cpu")[:1]] * 3
    monkeypatch.setattr("dpjax.runtime.devices.check_devices", lambda devices: several)
    with pytest.raises(ValueError, match=r"^devices: given 3 devices; expected devices that share num_chains=4 evenly"):
        choose_mesh(3, 4)
    monkeypatch.setattr(jax, "local_devices", lambda: several)
    with jax.default_device(jax.devices("cpu")[0]):
        assert choose_mesh(None, 6) is None
