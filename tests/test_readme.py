"""The README's code runs as it stands, and its links lead somewhere."""

import re
from pathlib import Path

import jax

import dpjax

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_the_code_runs(capsys):
    names: dict = {}
    # NumPyro's own code promotes ranks and types.
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        exec(compile("\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.S)), "README.md", "exec"), names)
    assert names["posterior"].draws["coef"].shape == (4, 2_000, 3)
    assert isinstance(names["algorithm"], dpjax.base.SamplingAlgorithm)
    assert "r_hat" in capsys.readouterr().out


def test_the_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", TEXT)
    assert targets
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def test_the_two_commands_are_those_of_the_makefile():
    rules = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)$", TEXT, re.M):
        assert re.search(rf"^{target}:", rules, re.M)
