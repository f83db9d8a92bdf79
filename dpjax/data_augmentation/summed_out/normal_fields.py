"""Hidden fields of real numbers that are Normal together, given the parameters and all that was released.

They are if the log-density of the model and those of the channels are quadratic in them. An example is a regression on
a covariate that is missing, or was released with Gaussian noise. The integral over them is then known from the
slope and the curvature at any place.
"""

from collections.abc import Callable
from math import log, pi

import jax
import jax.numpy as jnp

from dpjax._util.degree import degrees_in
from dpjax._util.pytree import static
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.terms import Terms
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics import proper_density
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

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`."""

        def log_density(parameters: Parameters) -> Array:
            centre, _, scales = self._normal(model, parameters)
            volume = sum(
                jnp.where(hidden, log(2 * pi) - jnp.log(scale), 0.0)
                for hidden, scale in zip(self._hidden(), scales, strict=True)
            )
            return proper_density(self._density(model, parameters)(centre) + volume / 2)

        return log_density

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`."""
        centre, factor, scales = self._normal(model, parameters)
        noise = [
            jnp.where(hidden, 1 / jnp.sqrt(scale), 0.0)[rows] * jax.random.normal(each, rows.shape, scale.dtype)
            for each, hidden, scale in zip(jax.random.split(key, len(scales)), self._hidden(), scales, strict=True)
        ]
        moved = solve_upper([[entry[rows] for entry in row] for row in factor], noise)
        drawn = {name: mean[rows] + off for name, mean, off in zip(self.fields, centre, moved, strict=True)}
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

    def _normal(self, model: Model, parameters: Parameters) -> tuple[Numbers, list[list[Array]], list[Array]]:
        """The mean of the Normal distribution, and the factors L and D of its precision L D L'."""
        start, hidden = self._start(), self._hidden()
        slope, precision = expand(self._density(model, parameters), start)
        slope = [jnp.where(own, entry, 0.0) for own, entry in zip(hidden, slope, strict=True)]
        for i, row in enumerate(precision):
            for j, entry in enumerate(row):
                precision[i][j] = jnp.where(hidden[i] & hidden[j], entry, float(i == j))
        factor, scales = factorize(precision)
        scaled = [entry / scale for entry, scale in zip(solve_lower(factor, slope), scales, strict=True)]
        steps = solve_upper(factor, scaled)
        return tuple(place + step for place, step in zip(start, steps, strict=True)), factor, scales


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

    return degrees_in(density, numbers, parameters, records)[0] == 2


def expand(density: Callable[[Numbers], Array], start: Numbers) -> tuple[list[Array], list[list[Array]]]:
    """The slope, and the negative curvature, of the log-densities of independent records in numbers of their own."""
    places = range(len(start))

    def slopes(numbers: Numbers) -> list[Array]:
        return [jax.jvp(density, (numbers,), (unit(place, numbers),))[1] for place in places]

    columns = [jax.jvp(slopes, (start,), (unit(place, start),))[1] for place in places]
    return slopes(start), [[-columns[j][i] for j in places] for i in places]


def unit(place: int, numbers: Numbers) -> Numbers:
    """Ones in one of the fields and zeros elsewhere."""
    return tuple(jnp.full_like(leaf, float(place == other)) for other, leaf in enumerate(numbers))


def factorize(matrix: list[list[Array]]) -> tuple[list[list[Array]], list[Array]]:
    """The lower triangular L with ones on its diagonal, and the diagonal D, of matrices L D L'."""
    size = range(len(matrix))
    factor = [[jnp.full_like(entry, float(i == j)) for j, entry in enumerate(row)] for i, row in enumerate(matrix)]
    scales: list[Array] = []
    for j in size:
        scales.append(matrix[j][j] - sum(factor[j][k] ** 2 * scales[k] for k in range(j)))
        for i in range(j + 1, len(matrix)):
            within = sum(factor[i][k] * factor[j][k] * scales[k] for k in range(j))
            factor[i][j] = (matrix[i][j] - within) / scales[j]
    return factor, scales


def solve_lower(factor: list[list[Array]], right: list[Array]) -> list[Array]:
    """The solution of L x = b."""
    found: list[Array] = []
    for i, entry in enumerate(right):
        found.append(entry - sum(factor[i][k] * found[k] for k in range(i)))
    return found


def solve_upper(factor: list[list[Array]], right: list[Array]) -> list[Array]:
    """The solution of L' x = b."""
    found = list(right)
    for i in reversed(range(len(right))):
        found[i] = right[i] - sum(factor[k][i] * found[k] for k in range(i + 1, len(right)))
    return found
