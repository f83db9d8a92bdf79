"""The compiled loop makes the steps that it is asked for, with the same draws however a run is cut into chunks."""

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.runtime.chunk import Steps, make_draws

KEYS = jax.random.split(jax.random.key(3), 2)
CAPACITY = 8


class Counter(NamedTuple):
    """A random walk that counts its steps."""

    at: jax.Array
    steps: jax.Array


START = Counter(jnp.zeros(2), jnp.zeros(2, jnp.int32))


def walk(key, state, limit=1_000):
    at = state.at + jax.random.normal(key, (), state.at.dtype)
    return Counter(at, state.steps + 1), {"steps": jnp.ones((), jnp.int32), "failed": state.steps >= limit}


def keep(state, report):
    return {"at": state.at, "steps": report["steps"]}


@partial(jax.jit, static_argnames=("step", "in_turn", "fails", "combine", "complete"))
def run(states, start, length, thin, step=walk, **options):
    steps = Steps(start, length, thin)
    return make_draws(step, keep, chain_keys=KEYS, states=states, steps=steps, capacity=CAPACITY, **options)


def go(states=START, start=0, length=6, thin=1, **options):
    return run(states, *map(np.int32, (start, length, thin)), **options)


def test_draws_are_those_of_a_loop_in_python():
    made = go(length=2, thin=3)
    state, expected = START, []
    for number in range(6):
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(KEYS, number)
        state, _ = jax.vmap(walk)(keys, state)
        expected.append(state.at)
    np.testing.assert_allclose(made.draws["at"][:2], np.stack(expected)[[2, 5]], rtol=1e-6)
    np.testing.assert_array_equal(made.states.steps, [6, 6])
    np.testing.assert_array_equal(made.draws["steps"][:2], np.full((2, 2), 3))
    assert int(made.made) == 2


@pytest.mark.parametrize("thin", [1, 2])
def test_draws_do_not_depend_on_chunks_or_thinning(thin):
    whole = go(length=6 // thin, thin=thin)
    first = go(length=2 // thin, thin=thin)
    rest = go(first.states, start=2, length=4 // thin, thin=thin)
    parts = np.concatenate([first.draws["at"][: 2 // thin], rest.draws["at"][: 4 // thin]])
    np.testing.assert_array_equal(parts, whole.draws["at"][: 6 // thin])
    np.testing.assert_array_equal(parts, go().draws["at"][thin - 1 : 6 : thin])
    chex.assert_trees_all_equal(rest.states, whole.states)


def test_chains_in_turn_make_the_same_draws():
    np.testing.assert_allclose(go(in_turn=True).draws["at"][:6], go().draws["at"][:6], rtol=1e-6)


def take_back(key, state, report):
    return Counter(state.at - jax.random.normal(key, (), state.at.dtype), state.steps), report


def test_a_draw_is_completed_with_the_key_of_its_last_step():
    """Draws of the parameters that no sweep reads have that key; with another, they are drawn as well as ever."""
    completed, shorter = go(length=1, thin=3, complete=take_back), go(length=1, thin=2)
    np.testing.assert_allclose(completed.states.at, shorter.states.at, rtol=1e-6)


def latest(earlier, later):
    return later


def test_reports_are_combined_as_asked_for():
    np.testing.assert_array_equal(go(thin=3, combine=latest).draws["steps"][:6], np.ones((6, 2)))


def tire(key, state):
    return walk(key, state, limit=5)


def tired(report):
    return jnp.any(report["failed"])


@pytest.mark.parametrize(("thin", "made"), [(1, 5), (2, 2), (3, 1)])
def test_where_a_step_fails_its_draw_is_not_made(thin, made):
    part, whole = go(step=tire, fails=tired, thin=thin), go(thin=thin)
    assert int(part.made) == made
    np.testing.assert_array_equal(part.states.steps, [made * thin] * 2)
    np.testing.assert_array_equal(part.draws["at"][:made], whole.draws["at"][:made])
    rest = go(part.states, start=made * thin, length=6 - made, thin=thin)
    np.testing.assert_array_equal(rest.draws["at"][: 6 - made], whole.draws["at"][made:6])


def test_no_more_steps_are_made_than_asked_for():
    calls = []

    def counted(key, state):
        jax.debug.callback(lambda: calls.append(1))
        return walk(key, state)

    jax.block_until_ready(go(step=counted, length=3, thin=2, in_turn=True))
    jax.effects_barrier()
    assert len(calls) == 3 * 2 * 2


def test_lengths_and_thinning_share_one_program():
    before = run._cache_size()
    for length, thin in ((1, 1), (3, 2), (8, 5)):
        go(length=length, thin=thin, step=another_walk)
    assert run._cache_size() == before + 1


def another_walk(key, state):
    return walk(key, state)
