"""The texts are plain English: short sentences in usual word order, without private metaphors.

``python -m tests.test_plain_english`` lists what is found, file by file; with paths it lists those files alone.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MOST_WORDS = 30
"""In a sentence."""

MOST_FOUND = 20
"""In all texts together: what is long for a reason, or a false alarm."""

PHRASES = {
    "refused by name": r"(?i)\brefus\w+ by name\b",
    "a sentence that begins with Where": r"(?:^|(?<=[.:] ))Where\b[^.?]*?,",
    "a sentence that begins with Of": r"(?:^|(?<=[.:] ))Of \w[^.?]*?\b(?:is|are|was|were|do|does|has|have)\b",
    "pay, buy or worth": r"(?i)\b(?:pays?|paid|paying|buys?|bought|buying|worth)\b",
    "a sweep, release or draw for per": r"\b(?:iterations?|proposals?|moves?|gradients?|steps?|seconds?|"
    r"times|draws?|effective draws?|evaluations?) a (?:sweep|release|draw)\b(?! makes)",
    "perfect start": r"(?i)\bperfect starts?\b",
    "planted fault": r"(?i)\bplant(?:s|ed)? (?:\w+ )?(?:faults?|wrong)\b",
    "given innovations": r"(?i)\bgiven innovations\b",
    "Wanted are": r"\bWanted (?:is|are)\b",
    "told, offer or law": r"(?i)\b(?:told|offer(?:s|ed|ing)?(?!, multiple)|(?<!power )laws?(?! of (?:large|total)))\b",
    "the records' noise": r"(?i)\brecords' noise\b",
}
"""What is found by what pattern."""

ANY_PHRASE = re.compile("|".join(f"({pattern.replace('(?i)', '')})" for pattern in PHRASES.values()), re.I)
"""Most sentences have none, in any case of letters."""

MESSAGE = re.compile(r"fail|warn|\w*(?:Error|Exceeded)")
"""The names of functions and classes that make errors and warnings."""

PART = re.compile("given|expected|remedy", re.I)
"""The names of variables that hold parts of them."""

WORD = re.compile(r"\W*(?:a|[^\W\d_]{2,}(?:\W[^\W\d_]+)*|\d[\d.,]*)\W*", re.I)
"""A word or a number; a symbol of a formula is neither."""

ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|cf|vs|al|No|Eq|Sec|Thm|Fig|p|pp|approx|resp|ed|eds|vol|St|Dr)\.(?= )")


def texts() -> Iterator[tuple[str, str]]:
    """All texts, each with the place where it stands: pages, notebooks, docstrings, errors and warnings."""
    for page in sorted([*ROOT.glob("[A-Z]*.md"), *(ROOT / "docs").rglob("*.md")]):
        yield name_of(page), page.read_text()
    for notebook in sorted((ROOT / "notebooks").glob("*.py")):
        yield name_of(notebook), markdown_cells(notebook.read_text())
    for module in sorted((ROOT / "dpjax").rglob("*.py")):
        for line, text in strings(ast.parse(module.read_text())):
            yield f"{name_of(module)}:{line}", text


def name_of(path: Path) -> str:
    """A path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def markdown_cells(script: str) -> str:
    """The text cells of a notebook that is kept as a script."""
    cells = (cell.partition("\n") for cell in re.split(r"^# %%", script, flags=re.M))
    return "\n\n".join(re.sub(r"^# ?", "", text, flags=re.M) for head, _, text in cells if "[markdown]" in head)


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings, and the texts of errors and warnings, by line."""
    for statement in statements(tree):
        value = statement.exc if isinstance(statement, ast.Raise) else getattr(statement, "value", None)
        if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield statement.lineno, prose(value.value)
        elif isinstance(value, ast.Call) and MESSAGE.fullmatch(called(value)):
            yield from filled(value.args)
        elif isinstance(statement, ast.Assign) and PART.search(ast.unparse(statement.targets[0])):
            yield from filled(value.elts if isinstance(value, ast.Tuple) else [value])


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """All statements: expressions within them are left out, for speed."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(tree, field, ()):
            yield child
            yield from statements(child)


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def filled(nodes: Iterable[ast.expr | None]) -> Iterator[tuple[int, str]]:
    """The texts among expressions, by line, with an ellipsis for each value that is filled in."""
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)


def prose(docstring: str) -> str:
    """A docstring without its examples, and without the names and types at the heads of entries."""
    lines, example = [], False
    for line in docstring.splitlines():
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        head = re.fullmatch(r"\s*(?:[-=]{3,}|\*{0,2}\w+(?:, \*{0,2}\w+)*(?: : .*)?|\.\. .*)", line)
        lines.append("" if example or head else re.sub(r"^\s{8,}(?=\S)", "    ", line))
    return unindented("\n".join(lines))


def unindented(text: str) -> str:
    """A docstring's lines from the left, but for formulas, which follow an empty line and are indented further."""
    return re.sub(r"^ +", "", re.sub(r"\n\s*\n {8,}\S[^\n]*(?=\n\s*\n|\Z)", "\n", text), flags=re.M)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in Markdown, without code, formulas on lines of their own, and addresses."""
    text = re.sub(r"^---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r"^( *)```.*?^\1```|^ *--8<--.*?$|<!--.*?-->|<[^>\n]+>", "\n\n", text, flags=re.M | re.S)
    text = re.sub(r"(?<=\n\n)(?: {4,}[^\n*-][^\n]*\n)+", "\n", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^ *\|.*$", lambda row: row[0].replace("|", "\n\n"), text, flags=re.M)
    text = re.sub(r"``[^`]+``|`[^`]+`|\$[^$]+\$", "CODE", text)
    for block in re.split(r"\n\s*\n|^ *(?:[*+-]|\d+\.|:|#+|>|\?\?\?|!!!) +|^(?=\*\*)|(?<=\\)\n", text, flags=re.M):
        block = ABBREVIATIONS.sub(lambda found: found[0][:-1], re.sub(r"[*_]{2,}|(?<!\w)[*_]|[*_](?!\w)", "", block))
        yield from re.split(r"(?<=[.?!])[\"')]* +(?=[^a-z]|dpjax\b|float\d)", " ".join(block.split()))


def findings(text: str) -> Iterator[tuple[str, str]]:
    """What is found in a text: the kind of it, and the sentence."""
    for sentence in sentences(text):
        words = sum(bool(WORD.fullmatch(token)) for token in sentence.split())
        if words > MOST_WORDS:
            yield f"{words} words", sentence
        if ANY_PHRASE.search(sentence):
            yield from ((kind, sentence) for kind, pattern in PHRASES.items() if re.search(pattern, sentence))


def found() -> list[tuple[str, str, str]]:
    """All findings, each with its place."""
    return [(place, kind, sentence) for place, text in texts() for kind, sentence in findings(text)]


def test_texts_are_plain_english() -> None:
    """No other test reads the texts for their style."""
    everything = found()
    assert len(everything) < MOST_FOUND, "\n".join(map(": ".join, everything))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{'word ' * 31}.", "31 words"),
        ("Where the noise is weak, draws are slow.", "a sentence that begins with Where"),
        ("Bad files are refused by name.", "refused by name"),
        ("The budget buys little.", "pay, buy or worth"),
        ("The law of the noise.", "told, offer or law"),
    ],
)
def test_findings_are_found(text: str, kind: str) -> None:
    assert [one for one, _ in findings(text)] == [kind]


@pytest.mark.parametrize("text", ["Short. " * 31, "```python\nlaw = 1\n```", "By the law of large numbers.", "`law`"])
def test_what_is_plain_is_not_found(text: str) -> None:
    assert list(findings(text)) == []


if __name__ == "__main__":
    for finding in found():
        if not sys.argv[1:] or any(finding[0].startswith(path) for path in sys.argv[1:]):
            print(": ".join(finding))
