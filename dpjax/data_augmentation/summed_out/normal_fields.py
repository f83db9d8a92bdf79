"""Hidden fields of real numbers that are Normal together, given the parameters and all that was released.

They are if the log-density of the model and those of the channels are quadratic in them. An example is a regression on
a covariate that is missing, or was released with Gaussian noise. The integral over them is then known from the
slope and the curvature at any place.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log, pi
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.degree import degrees_in
from dpjax._util.pytree import static
from dpjax._util.squares import replace_squares
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.terms import Terms
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics import proper_density
from dpjax.numerics.pivoted import Triangle, triangularize
from dpjax.release import Microdata

__all__ = ["NormalFields", "are_normal"]

MAX_FIELDS = 8
"""Most fields: the curvature has an entry, and a derivative of its own, for each pair."""

Numbers = tuple[Array, ...]
"""One number [m] of each hidden field."""


class NormalFields(Terms):
    """Hidden fields that are Normal together.

    Attributes
    ----------
    release
        What was released of all fields.
    fields
        The names of the hidden ones.
    """

    known: Records
    release: Microdata
    fields: tuple[str, ...] = static()

    def through(self, release: Microdata) -> "NormalFields":
        """See `Terms`."""
        return replace(self, release=release)

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`."""

        def log_density(parameters: Parameters) -> Array:
            highest, _, triangle = self._normal(model, parameters)
            volume = sum(jnp.where(hidden, log(2 * pi), 0.0) for hidden in self._hidden())
            return proper_density(highest + volume / 2 - jnp.sum(jnp.log(jnp.abs(triangle.pivots)), axis=0))

        return log_density

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`."""
        _, right, triangle = jax.tree.map(lambda leaf: leaf[..., rows], self._normal(model, parameters))
        steps = triangle.solve(right + jax.random.normal(key, right.shape, right.dtype))
        start, hidden = self._start(), self._hidden()
        drawn = {
            name: jnp.where(own[rows], place[rows] + step, place[rows])
            for name, own, place, step in zip(self.fields, hidden, start, steps, strict=True)
        }
        return jax.tree.map(lambda leaf: leaf[rows], self.known) | drawn

    def _density(self, model: Model, parameters: Parameters) -> Callable[[Numbers], Array]:
        """The log-density [m] of records and of what was released, as a function of the hidden numbers."""
        return lambda numbers: log_density_of(model, parameters, self.release, self.known, self.fields, numbers)

    def _hidden(self) -> list[Array]:
        """Whose numbers [m] of each field are hidden: not those that are exact."""
        release = self.release
        every = jnp.ones(release.n, bool)
        return [release.missing[name] if name in release.exact else every for name in self.fields]

    def _start(self) -> Numbers:
        """Numbers near the released ones, as those of the model may be far."""
        values = []
        for name, hidden in zip(self.fields, self._hidden(), strict=True):
            value = jnp.where(hidden, jnp.zeros_like(self.known[name]), self.known[name])
            for key, field in self.release.noisy_parts(name).items():
                seen = ~self.release.missing.get(key, jnp.zeros(self.release.n, bool))
                value = jnp.where(seen & hidden, field.values.astype(value.dtype), value)
            values.append(value)
        return tuple(values)

    def _held(self, inside: Array, dtype: Any) -> list[Array]:
        """Equations [1, f, m] by which exact values stay where they are."""
        places = [place for place, name in enumerate(self.fields) if name in self.release.exact]
        units = jnp.eye(len(self.fields), dtype=dtype)
        return [jnp.where(inside[place][None], 0, units[place][:, None])[None] for place in places]

    def _normal(self, model: Model, parameters: Parameters) -> tuple[Array, Array, Triangle]:
        """The largest log-density [m], and R and y where the Normal numbers less `_start` are R⁻¹ (y + noise)."""
        start, hidden = self._start(), self._hidden()
        rest, slope, matrix, residuals = expand(self._density(model, parameters), start)
        inside = jnp.stack(hidden)
        held = self._held(inside, matrix.dtype)
        triangle = triangularize(
            jnp.concatenate([jnp.where(inside[None], matrix, 0), *held]),
            jnp.concatenate([-residuals, *(jnp.zeros_like(rest)[None] for _ in held)]),
        )
        tilt = triangle.solve_transposed(jnp.where(inside, slope, 0))
        raised = jnp.sum(tilt * (tilt / 2 + triangle.right), axis=0)
        return rest - triangle.rest / 2 + raised, triangle.right + tilt, triangle


def log_density_of(
    model: Model, parameters: Parameters, release: Microdata, known: Records, fields: tuple[str, ...], numbers: Numbers
) -> Array:
    """The log-density [m] of records with these numbers, and of what was released of them."""
    records = known | dict(zip(fields, numbers, strict=True))
    density = model.log_density(parameters, records)
    for name in fields:
        for key, field in release.noisy_parts(name).items():
            density = density + release.of_seen(key, field.log_densities(records))
    return density


def are_normal(model: Model, release: Microdata, hidden: dict[str, jax.ShapeDtypeStruct]) -> bool:
    """Whether hidden fields [n, ...] are numbers whose log-density is known to be quadratic in them."""
    numbers = tuple(hidden.values())
    if not 0 < len(numbers) <= MAX_FIELDS:
        return False
    if not all(leaf.ndim == 1 and jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in numbers):
        return False
    key = jax.eval_shape(jax.random.key, 0)
    parameters = parameter_shapes(model)
    records = jax.eval_shape(lambda key, one: model.sample_records(key, one, release.n), key, parameters)

    def density(numbers: Numbers, parameters: Parameters, records: Records) -> Array:
        return log_density_of(model, parameters, release, release.hold(records), tuple(hidden), numbers)

    def find_squared(numbers: Numbers, *others: Any) -> list[Any]:
        return replace_squares(lambda numbers: density(numbers, *others), numbers, None)[1]

    if degrees_in(density, numbers, parameters, records)[0] != 2:
        return False
    squared = jax.eval_shape(find_squared, numbers, parameters, records)
    return all(leaf is not None and record_axis(leaf, release.n) is not None for leaf in squared)


def expand(density: Callable[[Numbers], Array], start: Numbers) -> tuple[Array, Array, Array, Array]:
    """The log-densities of independent records as ``rest + slope x - |matrix x + residuals|² / 2`` at `start` plus x.

    They are a rest [m], a slope [f, m], a matrix [k, f, m] and residuals [k, m]: the numbers whose squares the program
    of the density adds up, each in its own standard deviations.
    """
    squared = jax.eval_shape(lambda numbers: replace_squares(density, numbers, None)[1], start)
    nothing = [jnp.zeros(leaf.shape, leaf.dtype) for leaf in squared]
    (rest, bases), move = jax.linearize(lambda numbers: replace_squares(density, numbers, nothing), start)
    slopes, turns = zip(*(move(unit(place, start)) for place in range(len(start))), strict=True)
    (factors,) = jax.vjp(lambda squares: replace_squares(density, start, squares)[0], nothing)[1](jnp.ones_like(rest))
    # A factor of 0 is that of what is missing.
    scales = [jnp.where(each == 0, 0.0, jnp.sqrt(-2 * jnp.where(each == 0, -0.5, each))) for each in factors]

    def as_rows(leaves: Sequence[Array]) -> Array:
        scaled = [scale * leaf for scale, leaf in zip(scales, leaves, strict=True)]
        parts = [jnp.moveaxis(leaf, record_axis(leaf, len(rest)) or 0, -1) for leaf in scaled]
        return jnp.concatenate([part.reshape(-1, len(rest)) for part in parts])

    return rest, jnp.stack(slopes), jnp.stack([as_rows(turn) for turn in turns], axis=1), as_rows(bases)


def record_axis(leaf: Any, count: int) -> int | None:
    """The axis of what is squared that is that of the records; None if that is not clear."""
    found = [axis for axis, size in enumerate(leaf.shape) if size == count]
    return found[0] if len(found) == 1 else None


def unit(place: int, numbers: Numbers) -> Numbers:
    """Ones in one of the fields and zeros elsewhere."""
    return tuple(jnp.full_like(leaf, float(place == other)) for other, leaf in enumerate(numbers))
