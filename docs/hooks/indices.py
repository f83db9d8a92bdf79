"""A hook of MkDocs: indices and exponents of formulas within sentences, such as x_i and e^(-u), are set as such."""

import re

# What stays as it is: code, formulas that KaTeX sets, and tags with their attributes.
KEPT = re.compile(r'(<pre.*?</pre>|<code.*?</code>|<div class="formula">.*?</div>|<[^>]+>)', re.S)

# One letter, perhaps with a prime or a hat, and one or two of an index; names such as num_records and r_hat have more.
LETTER = r"(?<![^\W\d_])(?<!_)([^\W\d_]['′\u0302]?)"
INDEX = re.compile(LETTER + r"_(max|[A-Za-z0-9]{1,2})(?![A-Za-z0-9_])")
INDEX_IN_BRACKETS = re.compile(LETTER + r"_\(([^()]*)\)")
EXPONENT = re.compile(r"(?<=[\w)])\^(?:\(((?:[^()]|\([^()]*\))*)\)|([±+−-]?[^\W_]+))")


def on_page_content(html: str, **_: object) -> str:
    """Called by MkDocs: the page with lower and raised indices."""
    return "".join(text if KEPT.fullmatch(text) else with_indices(text) for text in KEPT.split(html))


def with_indices(text: str) -> str:
    """The text between two tags."""
    text = INDEX.sub(r"\1<sub>\2</sub>", text)
    text = INDEX_IN_BRACKETS.sub(r"\1<sub>\2</sub>", text)
    return EXPONENT.sub(lambda found: f"<sup>{found[1] or found[2]}</sup>", text)
