"""The reference says the truth: one entry for each parameter, in the order of the signature, and examples that run."""

import ast
import builtins
import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dpjax
from dpjax.mechanisms import Mechanism
from tests.tools.hooks import load_hook
from tests.tools.public_api import members, options_of

PAGES = sorted((Path(__file__).parents[1] / "docs/reference").glob("*.md"))
SECTIONS = ("Parameters", "Other Parameters", "Attributes")
SECTION = re.compile(rf"^(?:{'|'.join(SECTIONS)})\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", re.M | re.S)


def resolve(path: str) -> Any:
    """What a dotted path of the reference names: a function rather than the module of its name."""
    parts = path.split(".")
    for size in range(1, len(parts) + 1):
        try:
            found: Any = importlib.import_module(".".join(parts[:size]))
            for part in parts[size:]:
                found = getattr(found, part)
        except (AttributeError, ModuleNotFoundError):
            continue
        return found
    raise LookupError(path)


def public() -> dict[str, Any]:
    """What the reference names, and for a module what that names."""
    entries = [entry for page in PAGES for entry in re.findall(r"^::: (\S+)", page.read_text(), re.M)]
    found = {entry: resolve(entry) for entry in entries}
    modules = {path: module for path, module in found.items() if isinstance(module, ModuleType)}
    inside = {f"{path}.{name}": getattr(module, name) for path, module in modules.items() for name in module.__all__}
    return {path: value for path, value in (found | inside).items() if callable(value)}


PUBLIC = public()


def entries_of(docstring: str | None) -> list[str]:
    """The names at the heads of the entries of a docstring's lists of parameters and fields."""
    listed = "".join(SECTION.findall(inspect.cleandoc(docstring or "")))
    return [line.partition(" :")[0] for line in listed.splitlines() if line and not line.startswith(" ")]


def parameters_of(value: Callable) -> list[str]:
    """The names in a signature, as an entry has them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = [one for one in inspect.signature(value).parameters.values() if one.name != "self"]
    return [name for one in parameters for name in options_of(one) or [stars.get(one.kind, "") + one.name]]


def is_contract(value: Any) -> bool:
    """Whether it is a protocol, an exception or a base class, whose members are described one by one."""
    is_base = getattr(value, "__init__", None) is object.__init__
    has_no_parameters = is_base or value is dpjax.Model or getattr(value, "_is_protocol", False)
    return inspect.isclass(value) and (has_no_parameters or issubclass(value, Exception))


def methods() -> Iterator[tuple[str, Callable]]:
    """Public methods of the classes in the reference whose docstring lists parameters."""
    for path, owner in PUBLIC.items():
        for name, method in inspect.getmembers(owner, inspect.isroutine) if inspect.isclass(owner) else ():
            if (
                not name.startswith("_")
                and "dpjax" in (getattr(method, "__module__", None) or "")
                and entries_of(method.__doc__)
            ):
                yield f"{path}.{name}", method


def misfit(value: Callable) -> tuple[list[str], list[str]] | None:
    """Signature and entries, where they differ."""
    expected, listed = parameters_of(value), entries_of(value.__doc__)
    return None if expected == listed else (expected, listed)


def test_each_parameter_has_one_entry_in_the_order_of_the_signature():
    callables = [(path, value) for path, value in PUBLIC.items() if not is_contract(value)]
    wrong = {path: misfit(value) for path, value in [*callables, *methods()] if misfit(value)}
    assert wrong == {}


def combined(first, second):
    """A function documented as none should be.

    Parameters
    ----------
    first, second
        Both at once.
    """


def test_combined_entries_are_found():
    assert misfit(combined) == (["first", "second"], ["first, second"])


COMBINATION = re.compile(r"^( *)((?:\w+, )+\w+)(?: : .*)?\n\1    \S", re.M)


def test_no_docstring_combines_entries():
    """Of functions that are not public neither; only errors may share an entry."""
    package = Path(dpjax.__file__).parent
    heads = [
        f"{path.relative_to(package)}: {names}"
        for path in package.rglob("*.py")
        for text in re.findall(r'"""(.*?)"""', path.read_text(), re.S)
        for _, names in COMBINATION.findall(text)
    ]
    assert [head for head in heads if not head.endswith(("Error", "Interrupt"))] == []


WITHOUT_EXAMPLE = {
    "dpjax.release.PrecisionWarning": "a warning, which depends on the float type of the process",
    "dpjax.base.SamplingAlgorithm": "BlackJAX's own, documented there",
}
"""Of protocols and type aliases none is asked for, either: they are what others are made like."""


def test_every_public_name_has_an_example_that_runs():
    """In its docstring, which the reference shows: a guide that uses the name is elsewhere."""
    needed = {path: value for path, value in PUBLIC.items() if getattr(value, "__module__", "").startswith("dpjax")}
    needed = {path: value for path, value in needed.items() if not getattr(value, "_is_protocol", False)}
    needed = {path: value for path, value in needed.items() if inspect.isclass(value) or inspect.isroutine(value)}
    shown = {path for path, value in needed.items() if ">>>" in (value.__doc__ or "")}
    assert set(needed) - shown - set(WITHOUT_EXAMPLE) == set()


def test_exceptions_have_no_example():
    assert {path for path in WITHOUT_EXAMPLE if ">>>" in (resolve(path).__doc__ or "")} == set()


def test_members_without_an_entry_elsewhere_are_shown():
    """What a mechanism inherits from `Mechanism` is described there alone: it once filled the page 25 times."""
    page = load_hook("entries").on_page_markdown("::: dpjax.Laplace\n\n::: dpjax.sample\n")
    options = "    options:\n      inherited_members: [from_epsilon]\n"
    assert page == f"::: dpjax.Laplace\n{options}\n::: dpjax.mcmc.sample.sample\n"


def test_code_in_the_list_of_names_has_no_backslashes():
    """Within code Markdown shows them: one stood before each bracket there."""
    line = "Row `batch[i]` of [n, k], or ``a[0]``, p(x | y)"
    assert load_hook("entries").escape(line) == "Row `batch[i]` of \\[n, k], or ``a[0]``, p(x \\| y)"


def test_a_mechanism_has_at_most_twelve_members():
    """Each entry of the page, and the contract: what samplers ask beyond it are objects that it may have."""
    entries = load_hook("entries")
    mechanisms = [value for value in PUBLIC.values() if inspect.isclass(value) and issubclass(value, Mechanism)]
    shown = {
        owner.__name__: [name for name in members(owner) if name in vars(owner) or name in entries.inherited(owner)]
        for owner in mechanisms
    }
    assert {name: listed for name, listed in shown.items() if len(listed) > 12} == {}


def unbound(docstring: str) -> set[str]:
    """The names that the examples of a docstring use and do not define."""
    used, bound = set(), set(dir(builtins))
    for example in doctest.DocTestParser().get_examples(docstring):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                bound.add(node.name)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.alias):
                bound.add((node.asname or node.name).partition(".")[0])
    return used - bound


def test_examples_define_every_name_that_they_use():
    """They are copied from the reference: the doctests run them among the names of their own module."""
    assert unbound(">>> import dpjax\n>>> total = dpjax.count(n)") == {"n"}
    found = {}
    texts = {path: path.read_text() for path in (Path(__file__).parents[1] / "dpjax").rglob("*.py")}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if ">>>" in text else ():
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                docstring = ast.get_docstring(node) or ""
                if ">>>" in docstring and (names := unbound(docstring)):
                    found[path.stem, getattr(node, "name", "")] = names
    assert found == {}
