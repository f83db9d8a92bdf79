"""The repository itself: one version, short files, no traces of a machine, and a command line that answers."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import dpjax
from dpjax.__main__ import EXTRAS, main
from dpjax.base import MEMBERS, REQUIRED
from tests.tools import versions
from tests.tools.public_api import PARTS

ROOT = Path(__file__).parents[1]
DEVELOPMENT = ("test", "dev", "docs")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MACHINE_PATH = re.compile(r"(?<![\w.$}/:-])/(?:home|mnt|opt|root|tmp|Users|work)/|\bshare[d]/|\bfile:/")

OF_NO_LAYER = {"bad_inputs", "benchmarks", "extension", "mutants", "tools"}
"""Folders of tests of all layers or of none: refusals, benchmarks, parts of a user's own, and what tests need."""


def tracked_files() -> list[Path]:
    """Every file that git tracks."""
    command = ["git", "ls-files", "-z", "--cached"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git and a checkout")
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


MOST_BYTES = 1_000_000
BUILT = re.compile(
    r"(?:^|/)(?:__pycache__|dist|site|build|\.?\w+_cache|[\w.-]+\.egg-info|\.venv[^/]*)/"
    r"|(?:-(?:cache|atime)|\.(?:py[co]|so|o|a|whl|tar\.gz|pkl|npz))$"
)
"""What tools build: folders of caches and environments, compiled programs, packages."""


def test_no_file_is_large_or_built():
    """Compiled programs of a test run were once committed, 13 MB of them."""
    names = [(path, path.relative_to(ROOT).as_posix()) for path in tracked_files()]
    assert [name for path, name in names if path.stat().st_size > MOST_BYTES or BUILT.search(name)] == []


@pytest.mark.parametrize(
    ("name", "built"),
    [
        (".jax_cache/jit_run-d4660b59-cache", True),
        ("dpjax/__pycache__/base.cpython-311.pyc", True),
        ("dist/dpjax-0.1.0.tar.gz", True),
        ("docs/images/demo.png", False),
        ("tests/mcmc/test_site.py", False),
    ],
)
def test_what_is_built_is_recognised(name, built):
    assert bool(BUILT.search(name)) is built


def test_version_is_the_same_everywhere():
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    newest = re.search(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert citation[1] == newest[1] == dpjax.__version__


def test_a_release_is_refused_until_all_agrees(tmp_path):
    """By the files as they are, and with an owner and dates filled in."""
    for name in ("CHANGELOG.md", "CITATION.cff", "pyproject.toml"):
        text = (ROOT / name).read_text().replace("OWNER", "somebody")
        text = text.replace(f"[{dpjax.__version__}] - Unreleased", f"[{dpjax.__version__}] - 2030-01-31")
        (tmp_path / name).write_text(text + "date-released: 2030-01-31\n" * (name == "CITATION.cff"))
    assert list(versions.problems(tmp_path)) == []
    (tmp_path / "CITATION.cff").write_text("version: 0.0.0\n")
    assert len(list(versions.problems(tmp_path))) == 3


def test_every_name_is_stable_or_experimental():
    lists = (ROOT / "docs/status.md").read_text().partition("## Stable")[2]
    others = [name for names in PARTS.values() for name in names]
    assert sorted(re.findall(r"`(\w+)`", lists)) == sorted([*dpjax.__all__, *others])


def test_lower_bounds_are_the_oldest_versions_tested():
    extras = PROJECT["optional-dependencies"]
    tested = ("plots", "census", "formula", "data", "test")
    bounds = sorted(PROJECT["dependencies"] + [bound for name in tested for bound in extras[name]])
    pins = dict(re.findall(r"^([\w-]+)==(.+)$", (ROOT / "constraints/oldest.txt").read_text(), re.M))
    names = [bound.split(">=")[0] for bound in bounds]
    assert [f"{name}>={pins[name]}" for name in names] == [pad(bound, pins) for bound in bounds]


def test_the_doctor_lists_the_extras_of_users():
    """Catches an extra of `pyproject.toml` that `python -m dpjax doctor` passes over."""
    extras = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name not in DEVELOPMENT}
    assert {name: tuple(need.partition(">=")[0] for need in needs) for name, needs in extras.items()} == EXTRAS


def pad(bound: str, pins: dict[str, str]) -> str:
    """`numpy>=2.0` written with as many parts as its pin: `numpy>=2.0.0`."""
    name, version = bound.split(">=")
    return f"{name}>={version}" + ".0" * (pins[name].count(".") - version.count("."))


def test_no_file_speaks_of_a_machine():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked_files()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(errors="ignore").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('path = "/home/someone/data.csv"', True),
        ("cd /tmp/build", True),
        ("https://example.org/home/page", False),
        ("#!/usr/bin/env bash", False),
        ("docs/work/notes", False),
    ],
)
def test_machine_paths_are_recognised(text, refused):
    assert bool(MACHINE_PATH.search(text)) is refused


def test_python_files_have_at_most_500_lines():
    long = [
        str(path.relative_to(ROOT))
        for folder in ("dpjax", "tests", "benchmarks", "problems")
        for path in (ROOT / folder).rglob("*.py")
        if len(path.read_text().splitlines()) > 500
    ]
    assert long == []


def test_no_place_asks_which_kind_of_release_it_is():
    """All else is said by `PrivateRelease`, so that another kind of release is known in one place."""
    package = ROOT / "dpjax"
    question = r"isinstance\([^()]*\b(?:LocalRelease|Microdata|Release)\b[^()]*\)"
    apart = [package / "release", package / "adapters"]
    paths = [path for path in package.rglob("*.py") if not any(map(path.is_relative_to, apart))]
    asking = [f"{path.name}: {found}" for path in paths for found in re.findall(question, path.read_text())]
    assert asking == []


VALUES = ("support", "discrete_support", "num_records", "count_field", "draws_prior", "exchangeable")
"""Members of a model that are no methods: facts of its records, None where there is nothing to say."""


def asked_of_models(text: str) -> list[str]:
    """The methods of models that code compares with None, or takes for a condition."""
    methods = set(MEMBERS) - {*REQUIRED, *VALUES}
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            found += [node.left]
        elif isinstance(node, (ast.Assert, ast.If, ast.IfExp, ast.While)):
            found += [node.test]
        elif isinstance(node, ast.BoolOp):
            found += node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found += [node.operand]
    # A table holds the sums of its conjugate model, if there are any.
    asked = [one for one in found if isinstance(one, ast.Attribute) and one.attr in methods]
    return [ast.unparse(one) for one in asked if not ast.unparse(one.value).endswith("table")]


def test_no_place_compares_a_method_of_a_model_with_none():
    """`Model` has a default for each, and `Model.has` says whether there is more: 104 places asked, or asserted it."""
    paths = [*(ROOT / "dpjax").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    assert [f"{path.name}: {one}" for path in paths for one in asked_of_models(path.read_text())] == []
    assert asked_of_models("assert model.update is not None") == ["model.update"]
    assert asked_of_models("x = {} if not model.derived else y") == ["model.derived"]


def test_capabilities_are_declared():
    """What a mechanism, a component, a model or a release can do is asked by its protocol, in no other way."""
    probing = re.compile(r"(?:has|get)attr\((?:self\.)?(?:mechanism|channel|component|model|release|layer), \"")
    paths = [path for path in (ROOT / "dpjax").rglob("*.py") if path.name != "base.py"]
    assert [path for path in paths if probing.search(path.read_text())] == []


def test_a_class_name_stands_for_one_thing():
    """`Draw` once named four classes; a histogram of the census is that of its files, under the name that these use."""
    texts = [path.read_text() for path in (ROOT / "dpjax").rglob("*.py")]
    names = Counter(name for text in texts for name in re.findall(r"^class (\w+)", text, re.M))
    assert {name for name, number in names.items() if number > 1} == {"Histogram"}


def test_python_blocks_of_the_readme_compile():
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["demo", "--help"]])
def test_command_line_answers(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    expected = dpjax.__version__ if arguments == ["--version"] else "usage: python -m dpjax"
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["demo", "--nonsense"]])
def test_command_line_refuses_nonsense(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: python -m dpjax" in capsys.readouterr().err


def test_actions_are_pinned_by_commit_and_keep_no_credentials():
    """Whoever moves a tag would run code in CI with the token of the checkout."""
    for path in (ROOT / ".github/workflows").iterdir():
        text = path.read_text()
        assert re.findall(r"uses: (?!\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$).*", text, re.M) == []
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_no_private_name_of_a_dependency_is_used():
    """It may be gone in a version that the bounds allow: by its module, or of what a call returns."""
    libraries = "jax|jaxlib|numpy|np|scipy|numpyro|blackjax|optax|dp_accounting|arviz|pyarrow"
    used = re.compile(rf"\b(?:{libraries})(?:\.\w+)*\._(?!_)\w+|(?<!super\()\)\._(?!replace\b|asdict\b)[a-z]\w*")
    found = [path.name for path in (ROOT / "dpjax").rglob("*.py") if used.search(path.read_text())]
    assert found == []
