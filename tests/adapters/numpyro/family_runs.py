"""Values of a family at its points, through its form and back: compiled once a family."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.form import CENTRED
from dpjax.adapters.numpyro.forms import draw_value, form_of
from dpjax.adapters.numpyro.truncation import log_density
from tests.adapters.numpyro.ended import ENDS, Ended
from tests.adapters.numpyro.families import CONTINUOUS, DISCRETE, Family

N = 4_000
SEED = 7


class Run(NamedTuple):
    """What a form makes of values [K, n] that SciPy draws at K points.

    draws, density
        dpjax's own draws, and the log-density of the values.
    again, moved
        The values with the noise of the values, at the same and at the next point.
    tilt
        log f(value) + log |d value / d noise| - log g(noise), where the form has a density g of its noise: constant;
        NaN in an end cell.
    """

    values: np.ndarray
    draws: np.ndarray
    density: np.ndarray
    again: np.ndarray
    moved: np.ndarray
    tilt: np.ndarray
    words: str
    free: bool


def family_of(name: str) -> Family:
    family = CONTINUOUS[name] if name in CONTINUOUS else DISCRETE[name]
    if name not in ENDS:
        return family
    return family._replace(oracle=lambda *point: Ended(family.oracle(*point), ENDS[name]))


def law_at(family: Family, point: Any) -> Any:
    return family.law(*point).expand((N,))


@cache
def run(name: str) -> Run:
    """The run of a family; its values are rounded to the precision under test."""
    family = family_of(name)
    points = jnp.asarray(family.at(), float)
    random = np.random.default_rng(SEED)
    drawn = np.stack([family.oracle(*point).rvs(size=N, random_state=random) for point in family.at()])
    values = jnp.asarray(drawn, int if name in DISCRETE else float)
    words: list[tuple[str, bool]] = []

    def one(point: jax.Array, following: jax.Array, value: jax.Array, key: jax.Array) -> tuple:
        law, following_law = law_at(family, point), law_at(family, following)
        form, other = form_of(law), form_of(following_law)
        words.append((form.description, form.log_density is None))
        noise = form.noise(key, value)
        tilt = jnp.zeros(N)
        # Noise with a component that is drawn is not a function of the value; see `test_mixtures`.
        if form.log_density is not None and name in CONTINUOUS and noise.shape == value.shape:
            slope = jax.jvp(form.value, (noise,), (jnp.ones_like(noise),))[1]
            tilt = log_density(on_floats(law), value) + jnp.log(jnp.abs(slope)) - form.log_density(noise)
            # In an end cell many numbers share a value, and there is no slope.
            tilt = jnp.where((slope == 0) & (name in ENDS), jnp.nan, tilt)
        return draw_value(key, law), log_density(on_floats(law), value), form.value(noise), other.value(noise), tilt

    keys = jax.random.split(jax.random.key(SEED), len(points))
    results = jax.jit(jax.vmap(one))(points, jnp.roll(points, -1, axis=0), values, keys)
    return Run(np.asarray(values), *(np.asarray(result) for result in results), *words[0])


def is_centred(name: str) -> bool:
    return run(name).words == CENTRED
