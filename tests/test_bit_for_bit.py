"""The script that compares draws before and after a change of the house tells one bit."""

import importlib
import json
from types import ModuleType

import numpy as np
import pytest

CALL = "prior predictive"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, imported where it is used: it builds models."""
    return importlib.import_module("tests.tools.bit_for_bit")


def test_there_are_calls_of_all_kinds(script: ModuleType) -> None:
    assert len(script.CALLS) >= 40


def test_one_bit_and_one_name_change_the_hash(script: ModuleType) -> None:
    draws = {"a": np.linspace(0.0, 1.0, 7), "b": np.arange(3)}
    other = draws | {"a": np.nextafter(draws["a"], 2.0)}
    renamed = {"a": draws["a"], "c": draws["b"]}
    assert script.digest(draws) == script.digest(dict(reversed(draws.items())))
    assert (
        len(
            {
                script.digest(draws),
                script.digest(other),
                script.digest(renamed),
                script.digest(draws | {"b": np.arange(3.0)}),
            }
        )
        == 4
    )


def test_a_call_that_differs_is_named(tmp_path, capsys: pytest.CaptureFixture, script: ModuleType) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    assert script.main([str(old), "--only", CALL]) == 0
    assert script.main([str(new), "--only", CALL, "--against", str(old)]) == 0
    old.write_text(json.dumps({CALL: "another"}))
    assert script.main([str(new), "--only", CALL, "--against", str(old)]) == 1
    assert f"differs: {CALL}" in capsys.readouterr().out
