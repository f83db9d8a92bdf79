"""Long runs in parts: each repeats an experiment with keys of its own, and joins a file that has the parts before it.

An experiment has parts if one of its settings is `part`. Part K of R repeats makes those from K R on, so that the parts
0 to K together are the run of (K + 1) R repeats. In its result a name that ends in ``_each`` has a list over repeats.
The same name without that ending has their median, if they are numbers. All else is that of the first part.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

EACH = "_each"

Result = dict[str, Any]


def repeats_of(part: int, repeats: int) -> range:
    """The numbers of the repeats of a part."""
    return range(part * repeats, (part + 1) * repeats)


def pool(found: Result) -> Result:
    """The same with the median of every list of numbers over repeats."""
    lists = {name: each for name, each in found.items() if name.endswith(EACH) and np.ndim(each) == 1}
    medians = {name.removesuffix(EACH): float(f"{np.median(each):.4g}") for name, each in lists.items()}
    return {**found, **medians}


def join(one: Any, other: Any) -> Any:
    """Results of two parts as one."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [join(*pair) for pair in zip(one, other, strict=True)]
    if not isinstance(one, dict):
        return one
    joined = {name: one[name] + other[name] if name.endswith(EACH) else join(one[name], other[name]) for name in one}
    return pool(joined) if any(name.endswith(EACH) for name in one) else joined


def read(path: Path, settings: Result) -> Result | None:
    """What a file holds that this part may join; None if there is none yet."""
    if not path.exists():
        return None
    kept: Result = json.loads(path.read_text())
    own = json.loads(json.dumps({name: value for name, value in settings.items() if name != "part"}))
    if kept["settings"] != own or "parts" not in kept:
        raise ValueError(f"--json: given {path} of other settings, expected those of this part. Name another file.")
    if settings["part"] in kept["parts"]:
        raise ValueError(f"--part: given {settings['part']}, which {path} has, expected another than {kept['parts']}.")
    return kept


def add(kept: Result | None, content: Result) -> Result:
    """What a file holds with a part more."""
    if kept is None:
        return content
    both = sorted((kept, content), key=lambda each: each["parts"][0])
    seconds = sum(each["environment"]["cpu_seconds"] for each in both)
    own = {"environment": content["environment"] | {"cpu_seconds": seconds}, "settings": content["settings"]}
    return {**join(*both), **own, "parts": sorted(kept["parts"] + content["parts"])}
