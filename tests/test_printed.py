"""What pages show is compared with what their code prints: stale words and numbers are found, other draws are not."""

import pytest

from tests.tools.printed import differences, with_output

TABLE = "      mean  sd  50%  mcse_mean\na[0]  1.00  2.  0.9  0.1\nnote on 3 and 5"


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (TABLE, TABLE.replace("0.9", "1.2")),
        (TABLE, TABLE.replace("1.00", "inf")),
        ("x float32[3] after 4 sweeps", "x float64[3] after 1 sweep"),
        ("p = 0.43", "p = 0.51"),
    ],
)
def test_other_draws_are_no_difference(shown, printed):
    assert differences(shown, printed) == []


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (TABLE, TABLE.replace("0.9", "2.9")),
        (TABLE, TABLE.replace("a[0]", "b[0]")),
        (TABLE, TABLE.replace("sd", "se")),
        ("ε = 1.5", "ε = 15"),
        ("ε = 1.5", "ρ = 1.5"),
        ("one line", "one line\nand another"),
        ("", "something"),
    ],
)
def test_stale_outputs_are_differences(shown, printed):
    assert differences(shown, printed)


def test_code_that_prints_nothing_has_no_block():
    assert with_output("x = 1\n", "") == "```python\nx = 1\n```\n"
    assert with_output("print(1)\n", "1\n") == "```python\nprint(1)\n```\n\n```text\n1\n```\n"
