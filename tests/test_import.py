"""What `import dpjax` loads: little, and the rest when it is first used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dpjax
from dpjax._util.lazy import implemented_by
from tests.tools.public_api import PARTS

MOST_MODULES = 3
"""Modules of dpjax that `import dpjax` loads: the package, `_util` and what makes its names."""

MOST_MODULES_OF_MECHANISM = 72

MOST_NAMES = 40
"""Names that `dpjax` shows."""

HEAVY = ("arviz", "blackjax", "filelock", "jax", "matplotlib", "numpyro", "optax", "scipy", "tqdm")
HEAVY_FOR_MECHANISM = ("arviz", "blackjax", "matplotlib", "numpyro", "optax", "scipy.special", "scipy.stats", "tqdm")
SAMPLERS = ("data_augmentation", "mcmc", "mixture", "private")

CHILD = f"""
import sys

def loaded(names):
    return [name for name in names if name in sys.modules]

def count():
    return sum(name.partition(".")[0] == "dpjax" for name in sys.modules)

import dpjax
assert loaded({HEAVY}) == [], loaded({HEAVY})
assert count() <= {MOST_MODULES}, count()
assert set(dpjax.__all__) == {{name for name in dir(dpjax) if not name.startswith("__")}}
dpjax.Laplace(scale=1.3)
assert loaded({HEAVY_FOR_MECHANISM}) == [], loaded({HEAVY_FOR_MECHANISM})
assert loaded(f"dpjax.{{name}}" for name in {SAMPLERS}) == []
assert count() <= {MOST_MODULES_OF_MECHANISM}, count()
assert dpjax.models.normal.__name__ == "normal"
assert "blackjax" not in sys.modules
names = {{}}
exec("from dpjax import *", names)
assert set(dpjax.__all__) <= set(names)
"""


def test_modules_are_loaded_when_they_are_used() -> None:
    subprocess.run([sys.executable, "-c", CHILD], cwd=Path(__file__).parents[1], check=True)


def imports_for_type_checkers(path: Path) -> list[tuple[str, str]]:
    """Modules, and the names that a file imports from them under `if TYPE_CHECKING`."""
    blocks = [node.body for node in ast.parse(path.read_text()).body if isinstance(node, ast.If)]
    return [(node.module, alias.name) for block in blocks for node in block for alias in node.names]


@pytest.mark.parametrize("module", ["dpjax", "dpjax.base"])
def test_type_checkers_are_told_what_is_imported(module: str) -> None:
    owner = import_module(module)
    told = imports_for_type_checkers(Path(owner.__file__))
    assert told
    for source, name in told:
        assert getattr(owner, name) is getattr(__import__(source, fromlist=[name]), name)


def test_each_submodule_is_an_attribute() -> None:
    names = {path.stem for path in Path(dpjax.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    public = {name for name in names if not name.startswith("_")} - {"demo"}
    assert all(getattr(dpjax, name).__name__ == f"dpjax.{name}" for name in public)


def test_the_package_shows_few_names_and_has_those_of_its_parts() -> None:
    """Names that are shown elsewhere can be imported from the package, too, for type checkers as well."""
    assert len(dpjax.__all__) <= MOST_NAMES
    given = {name for _, name in imports_for_type_checkers(Path(dpjax.__file__))}
    further = {name for names in PARTS.values() for name in names}
    assert set(dpjax.__all__) | further | {"private_target"} == given  # the former name of private.numpyro_target
    assert not further & {*dpjax.__all__, *dir(dpjax)}


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'dpjax' has no attribute 'Lapalce'"):
        dpjax.Lapalce  # noqa: B018


class Number(int):
    @implemented_by("math.pow")
    def power(self, exponent: float = 2.0) -> float:
        """The power."""
        raise NotImplementedError


def test_a_method_may_be_a_function_that_is_imported_when_it_is_called() -> None:
    """The defaults are the method's: `math.pow` has none, and takes no names."""
    assert (Number(3).power(), Number(3).power(exponent=3.0)) == (9.0, 27.0)
    assert Number.power.__doc__ == "The power."
    with pytest.raises(TypeError, match="base: given a value; expected one of power's arguments"):
        Number(3).power(base=2.0)  # type: ignore[call-arg]
    with pytest.raises(ModuleNotFoundError):
        implemented_by("no_such_module.name")(lambda: None)()
