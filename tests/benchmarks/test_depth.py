"""What is read off compiled programs: steps, kernels and bytes; and sweeps that would cost too much by them."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest

import dpjax
from benchmarks import depth
from benchmarks.hlo import Cost, bytes_of, program_cost


def compiled(function: object, *arguments: object) -> str:
    return jax.jit(function).lower(*arguments).compile().as_text()


def test_steps_of_loops_within_loops() -> None:
    def twice(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jax.lax.fori_loop(0, 7, lambda _, y: jnp.sin(y), x), None

    text = compiled(lambda x: jax.lax.scan(twice, x, None, length=5)[0], jnp.ones(3))
    cost = program_cost(text)
    assert cost.steps == 35
    assert cost.kernels >= 35


def test_a_loop_whose_length_the_data_decide() -> None:
    text = compiled(lambda x: jax.lax.while_loop(lambda y: jnp.sum(y) > 1, lambda y: y / 2, x), jnp.ones(3))
    assert program_cost(text).steps == 1
    assert program_cost(text, unknown_trips=4.5).steps == 4.5


def test_bytes() -> None:
    assert bytes_of("(f32[3,4]{1,0}, pred[], s64[2]{0})") == 48 + 1 + 16
    assert Cost(2, 0, 3) + Cost(1, 1, 1).repeat(10) == Cost(12, 10, 13)


@pytest.mark.x64
@pytest.mark.parametrize("imputation", [dpjax.imwg(window=1), dpjax.imwg("random"), dpjax.soma(4)], ids=repr)
def test_no_step_copies_what_all_records_add(imputation: object) -> None:
    """Four times the records cost four times the bytes, not sixteen times."""
    few, many = (program_bytes(imputation, n) for n in (500, 2_000))
    assert many < 6 * few


def program_bytes(imputation: object, n: int) -> float:
    program, arguments, _ = depth.regression(imputation, n)
    return program_cost(compiled(program, *arguments)).moved


@pytest.mark.x64
def test_rounds_are_measured_in_windows() -> None:
    rounds = partial(depth.measure_rounds, n=500)
    assert 1 < rounds(dpjax.imwg(window=8), epsilon=0.1) < rounds(dpjax.imwg(window=8), epsilon=5) < 8
