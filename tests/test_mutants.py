"""The mutants of `tests.mutants` can be made; none is run here."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]
NAMES = [mutant.name for mutant in MUTANTS]


@pytest.mark.x64
@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_a_fault_has_one_place_and_leaves_a_program(mutant: Mutant) -> None:
    """A refactoring that moves the place of a fault is noticed here, and not where mutants are run."""
    text = (ROOT / "dpjax" / mutant.path).read_text()
    mutated = mutant.applied(text)
    assert mutated != text
    compile(mutated, mutant.path, "exec")
    assert mutant.tests
    assert all((ROOT / "tests" / name).is_file() for name in mutant.tests)


@pytest.mark.x64
def test_faults_are_spread_over_the_library() -> None:
    assert len(MUTANTS) >= 80
    assert not [name for name, number in Counter(NAMES).items() if number > 1]
    parts = {path.name for path in (ROOT / "dpjax").iterdir() if path.name[0] != "_"} - {"py.typed"}
    assert {Path(mutant.path).parts[0] for mutant in MUTANTS} >= parts
