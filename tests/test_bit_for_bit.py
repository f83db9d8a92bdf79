"""The script that compares draws before and after a change of the house tells one bit."""

import json

import numpy as np
import pytest

from tests.bit_for_bit import CALLS, digest, main

CALL = "prior predictive"


def test_there_are_calls_of_all_kinds() -> None:
    assert len(CALLS) >= 40


def test_one_bit_and_one_name_change_the_hash() -> None:
    draws = {"a": np.linspace(0.0, 1.0, 7), "b": np.arange(3)}
    other = draws | {"a": np.nextafter(draws["a"], 2.0)}
    renamed = {"a": draws["a"], "c": draws["b"]}
    assert digest(draws) == digest(dict(reversed(draws.items())))
    assert len({digest(draws), digest(other), digest(renamed), digest(draws | {"b": np.arange(3.0)})}) == 4


def test_a_call_that_differs_is_named(tmp_path, capsys: pytest.CaptureFixture) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    assert main([str(old), "--only", CALL]) == 0
    assert main([str(new), "--only", CALL, "--against", str(old)]) == 0
    old.write_text(json.dumps({CALL: "another"}))
    assert main([str(new), "--only", CALL, "--against", str(old)]) == 1
    assert f"differs: {CALL}" in capsys.readouterr().out
