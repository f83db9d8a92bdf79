"""Sums over windows that are made once: a table of the log-density of each record in the one number that decides it.

The parameters of a regression reach each record through its linear predictor alone. In that number η the logarithm of
the sum over a window is smooth. Polynomials of degree five replace it, which have its value, slope and curvature at
knots. Then a gradient costs a look at the table, however long the window is.

A rough table reaches over what the prior expects. It is good enough to climb on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logit, logsumexp

from dpjax._util.bottleneck import Bottleneck
from dpjax._util.hoist import hoist
from dpjax._util.pytree import static
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.rows import divides
from dpjax.data_augmentation.summed_out.terms import Terms, Windows
from dpjax.models.predictor import find_predictor
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics import proper_density

__all__ = ["TabulatedWindows", "as_double", "in_double_precision", "tabulate"]

CELLS = 128
"""Pieces of the table of each record. A rough one has as many, so that it is read by the same program."""

REACH = 6.0
"""How far the table reaches, from the middle of the numbers at the given parameters, in units of half their range."""

EXTREME, ROUGH_REACH = 0.02, 1.5
"""The share of numbers on each side that do not count for the range of a rough table, and how far it reaches."""

ROUGHLY = 15.0
"""Logarithms by which the density of what was released falls short of the largest where a rough table sums no more."""

LEAST_STEP = 1e-6
"""The least length of a piece, relative to the number."""

LOOKS = np.array([0, 16, 32, 40, 48, 52, 56, 60, 64, 68, 72, 76, 80, 88, 96, 112, 128])
"""Knots at which it is looked which numbers of a window matter, and what it leaves out: most where draws will be."""

NEGLIGIBLE = 36.0
"""Logarithms by which the density of a number falls short of the largest where it is not summed over for the table."""

SHORTEST, RATIO = 32, 4
"""Least length of sums for the table, and that of the next longer ones to it: each length is a program."""

TOGETHER = 2**16
"""Numbers that are summed over together for the table, so that they stay in a processor's cache."""


SCALES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "identity": (lambda number: number, lambda place: place),
    "log": (jnp.log, jnp.exp),
    "logit": (logit, jax.nn.sigmoid),
}
"""Maps of the number to the places of the table, and back: on the first of them on which the table has no holes."""


class TabulatedWindows(Terms):
    """Records whose density is tabulated in the one number through which the parameters reach each of them.

    The log-densities are those of the windows less what they are in the middle of the table, so that their sum is
    accurate in float32.

    Attributes
    ----------
    windows
        The sums that the table stands for.
    start
        Where the table of each record begins [m].
    step
        The length of its pieces [m].
    pieces
        The coefficients of the polynomials, in units of the step [piece, m, 6]: pieces in use are close in memory.
    log_left_out
        The logarithm of what the window leaves out, at most, in each piece [piece, m].
    scale
        One of `SCALES`, on which the table is.
    """

    known: Records
    windows: Windows
    start: Array
    step: Array
    pieces: Array
    log_left_out: Array
    scale: str = static()

    @property
    def is_approximate(self) -> bool:
        """Windows leave out what is beyond them."""
        return True

    @property
    def size(self) -> int:
        """The coefficients that are looked up."""
        return len(self.start) * self.pieces.shape[-1]

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`: the log-density [m] of each record up to a number that does not depend on the parameters."""
        numbers = self._build_numbers(model)

        def log_density(parameters: Parameters) -> Array:
            piece, along = self._find(numbers(parameters))
            _, records, powers = self.pieces.shape
            # As rows of a matrix they are found faster than by two places.
            at = self.pieces.reshape(-1, powers).at[piece * records + jnp.arange(records)]
            return jnp.where(self.windows.seen, evaluate(at.get(mode="promise_in_bounds"), along), 0)

        return log_density

    def left_out(self, model: Model, parameters: Parameters) -> Array:
        """See `Terms`; it is infinite where a number is beyond the table."""
        piece, along = self._find(self._build_numbers(model)(parameters))
        bound = jnp.exp(self.log_left_out[piece, jnp.arange(len(self.start))])
        return jnp.where(self.windows.seen, jnp.where((along >= 0) & (along <= 1), bound, jnp.inf), 0)

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`: by the windows."""
        return self.windows.draw(key, model, parameters, rows)

    def _build_numbers(self, model: Model) -> Callable[[Parameters], Array]:
        """``parameters -> [m]``: the number through which they reach each record."""
        name = self.windows.field
        found = predictor_of(model, self.known, name)
        numbers = hoist(found.before, parameter_shapes(model), self.known[name], self.known)
        return lambda parameters: jnp.broadcast_to(SCALES[self.scale][0](numbers(parameters)), self.start.shape)

    def _find(self, numbers: Array) -> tuple[Array, Array]:
        """The piece [m] of each number and where in it the number is [m], from 0 to 1, or beyond the table."""
        place = (numbers - self.start) / self.step
        piece = jnp.clip(jnp.floor(place), 0, len(self.pieces) - 1)
        return jax.lax.stop_gradient(piece).astype(int), place - jax.lax.stop_gradient(piece)


@jax.custom_jvp
def evaluate(coefficients: Array, along: Array) -> Array:
    """The polynomials [m, 6] at places [m] from 0 to 1; beyond, parabolas that bend down at most as these do there."""
    return value_and_slope(coefficients, along)[0]


@evaluate.defjvp
def move(primals: tuple[Array, Array], tangents: tuple[Array, Any]) -> tuple[Array, Array]:
    """The polynomials and their change with the places alone, in one pass."""
    value, slope = value_and_slope(*primals)
    return value, slope * tangents[1]


def value_and_slope(coefficients: Array, along: Array) -> tuple[Array, Array]:
    """The polynomials [m, 6] and their slopes at places [m]."""
    inside = jnp.clip(along, 0, 1)
    value = slope = bend = jnp.zeros_like(along)
    for power in range(coefficients.shape[-1] - 1, -1, -1):
        bend = bend * inside + 2 * slope
        slope = slope * inside + value
        value = value * inside + coefficients[..., power]
    beyond, bend = along - inside, jnp.minimum(bend, 0)
    return value + beyond * (slope + beyond * bend / 2), slope + beyond * bend


def predictor_of(model: Model, known: Records, field: str) -> Bottleneck:
    """The number through which the parameters reach each record, where there is one."""
    found = find_predictor(model, known, field)
    assert found is not None, "tables are of models with one"
    return found


@jit_model
def predict(model: Model, windows: Windows, parameters: Parameters) -> Array:
    """The numbers [draw, m] through which parameters [draw, ...] reach the records."""
    known, name = windows.known, windows.field
    before = predictor_of(model, known, name).before
    return jax.lax.map(lambda one: jnp.broadcast_to(before(one, known[name], known), windows.seen.shape), parameters)


@contextmanager
def in_double_precision() -> Iterator[None]:
    """A context in which new arrays of floats have 64 bits: tables are made once, and accurate to the last bit."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        yield


def as_double(tree: Any) -> Any:
    """A tree of JAX's arrays, of which those of floats have 64 bits."""
    # Whole numbers of NumPy would be passed to programs with 32 bits that were compiled for 64.
    return jax.tree.map(lambda x: jnp.asarray(x, float if jnp.issubdtype(x.dtype, jnp.floating) else None), tree)


def tabulate(model: Model, windows: Windows, parameters: Parameters, rough: bool = False) -> TabulatedWindows | None:
    """The table around what parameters [draw, ...] lead to; None if they reach records by more than one number.

    It is also None if there is no density at some place of the table, whatever its scale.

    Parameters
    ----------
    rough
        Whether the parameters are draws from the prior, of which the most extreme do not count.
    """
    if find_predictor(model, windows.known, windows.field) is None:
        return None
    with in_double_precision():
        exact = as_double(windows)
        numbers = np.asarray(predict.unoptimized(model, exact, as_double(parameters)))
        for scale, (forward, _) in SCALES.items():
            places = np.asarray(forward(jnp.asarray(numbers)))
            found = tabulate_between(model, exact, windows, places, scale, rough) if np.isfinite(places).all() else None
            if found is not None:
                return found
    return None


def tabulate_between(
    model: Model, exact: Windows, windows: Windows, places: np.ndarray, scale: str, rough: bool
) -> TabulatedWindows | None:
    """The table of windows on one scale, about places [draw, m]; None if somewhere on it there is no density.

    Parameters
    ----------
    exact
        The windows in double precision.
    """
    kind = windows.log_released.dtype
    ends, reach = ([EXTREME, 1 - EXTREME], ROUGH_REACH) if rough else ([0, 1], REACH)
    low, high = np.quantile(places, ends, axis=0)
    length = np.maximum(reach * (high - low), LEAST_STEP * CELLS * (1 + np.abs(low)))
    # As they are kept, so that the table is that of these knots.
    start, step = (each.astype(kind).astype(float) for each in ((low + high - length) / 2, length / CELLS))
    knots = start + step * np.arange(CELLS + 1)[:, None]
    counts, left_out = count_roughly(exact) if rough else count(model, exact, knots, scale)
    derivatives = sum_at_knots(model, exact, knots, counts, scale)
    derivatives = np.where(np.asarray(windows.seen)[:, None], derivatives, 0.0)
    if not np.all(np.isfinite(derivatives)):
        return None
    pieces = polynomials(derivatives * step[:, None] ** np.arange(3))
    pieces[..., 0] -= pieces[CELLS // 2, :, 0]
    kept = [jnp.asarray(each, kind) for each in (start, step, pieces, left_out)]
    return TabulatedWindows(windows.known, windows, kept[0], kept[1], kept[2], kept[3], scale)


def count_roughly(windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of windows [w, m] that may count for a rough table; of what it leaves out nothing is said."""
    released = np.asarray(windows.log_released)
    return released > np.max(released, axis=0) - ROUGHLY, np.full((CELLS, released.shape[1]), -np.inf)


def count(model: Model, windows: Windows, knots: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of windows [w, m] that count between knots, and the logarithm [piece, m] of what these leave out."""
    shares, left_out = map(np.asarray, look.on_host(model, windows, knots[LOOKS], scale))
    some = shares > -NEGLIGIBLE
    # Those between numbers that count do so between the places that were looked at.
    some = np.logical_or.accumulate(some, axis=0) & np.logical_or.accumulate(some[::-1], axis=0)[::-1]
    some &= np.isfinite(np.asarray(windows.log_released))
    logs = np.log(np.maximum(np.maximum(left_out[:-1], left_out[1:]), np.finfo(float).tiny))
    return some, np.repeat(logs, np.diff(LOOKS), axis=0)


@partial(jit_model, static_argnames=("scale",))
def look(model: Model, windows: Windows, places: Array, scale: str) -> tuple[Array, Array]:
    """How much each number of the windows counts [w, m] at the place where it counts most, and what they leave out.

    Places are [look, m]. The first is the logarithm of its share in the sum. The second is the bound [look, m] of what
    the windows leave out.
    """
    known, name = windows.known, windows.field
    build = partial(build_densities, model, known, name, scale)
    densities = build(windows.numbers)

    def at(place: Array) -> tuple[Array, Array]:
        density = densities(place)
        weights = density + windows.log_released
        bound = windows.bound(density, lambda row: build(row[None])(place)[0])
        return weights - logsumexp(weights, axis=0)[None], bound

    shares, left_out = jax.lax.map(at, places)
    return jnp.max(shares, axis=0), left_out


def build_densities(model: Model, known: Records, field: str, scale: str, numbers: Array) -> Callable[[Array], Array]:
    """``place [m] -> [w, m]``: the log-density of each record with these numbers [w, m], given places on a scale."""
    found = predictor_of(model, known, field)

    def weigh(place: Array, numbers: Array, known: Records) -> Array:
        own = SCALES[scale][1](place)
        shared = own if found.shape else own[0]
        return jax.vmap(lambda row: found.after(shared, row, known))(numbers)

    call = hoist(weigh, jax.ShapeDtypeStruct(numbers.shape[1:], float), numbers, known)
    return lambda place: proper_density(call(place))


def sum_at_knots(model: Model, windows: Windows, knots: np.ndarray, counts: np.ndarray, scale: str) -> np.ndarray:
    """The log-densities at knots [knot, m], with their slopes and curvatures [knot, m, 3].

    Only numbers that count [w, m] are summed over. Records with about as many of them are summed over together.
    """
    lengths, found = np.maximum(np.sum(counts, axis=0), SHORTEST), np.zeros((*knots.shape, 3))
    classes = SHORTEST * RATIO ** np.ceil(np.log(lengths / SHORTEST) / np.log(RATIO)).astype(int)
    blocks = [(np.max(classes), np.arange(len(classes)))]
    if (np.ptp(classes) > 0 or np.sum(classes) > TOGETHER) and divides(model, len(classes)):
        each = [(length, np.flatnonzero(classes == length)) for length in np.unique(classes)]
        blocks = [(length, block) for length, rows in each for block in split_rows(rows, TOGETHER // length)]
    order = np.argsort(~counts, axis=0, kind="stable")
    released = np.where(counts, np.asarray(windows.log_released), -np.inf)
    for length, rows in blocks:
        places = order[:length, rows]
        parts = (np.asarray(windows.numbers)[places, rows], released[places, rows], knots[:, rows])
        known = {name: leaf[rows] for name, leaf in windows.known.items()}
        own = model if len(blocks) == 1 else model.of_records(rows)
        found[:, rows] = differentiate(own, known, windows.field, scale, *parts)
    return found


def split_rows(rows: np.ndarray, most: int) -> list[np.ndarray]:
    """Rows in blocks of one size, at most so many, of which the last is filled up: each size is a program."""
    size = min(max(most, 1), 2 ** int(np.ceil(np.log2(len(rows)))))
    return [np.resize(rows[begin : begin + size], size) for begin in range(0, len(rows), size)]


@partial(jit_model, static_argnames=("field", "scale"))
def differentiate(
    model: Model, known: Records, field: str, scale: str, numbers: Array, released: Array, knots: Array
) -> Array:
    """The logarithms of sums over numbers [w, m], with slopes and curvatures, at knots [knot, m]: [knot, m, 3]."""
    densities = build_densities(model, known, field, scale, numbers)

    def value(place: Array) -> Array:
        return logsumexp(densities(place) + released, axis=0)

    def slope(place: Array) -> tuple[Array, Array]:
        return jax.jvp(value, (place,), (jnp.ones_like(place),))

    def at(place: Array) -> Array:
        (first, second), (_, third) = jax.jvp(slope, (place,), (jnp.ones_like(place),))
        return jnp.stack([first, second, third], axis=-1)

    return jax.lax.map(at, knots)


def polynomials(derivatives: np.ndarray) -> np.ndarray:
    """The coefficients [piece, m, 6] of quintic Hermite interpolants, by values, slopes and curvatures [knot, m, 3]."""
    (value, slope, bend), ends = np.moveaxis(derivatives[:-1], -1, 0), np.moveaxis(derivatives[1:], -1, 0)
    rise = ends[0] - value - slope - bend / 2
    turn, change = ends[1] - slope - bend, ends[2] - bend
    third = 10 * rise - 4 * turn + change / 2
    fourth = -15 * rise + 7 * turn - change
    fifth = 6 * rise - 3 * turn + change / 2
    return np.stack([value, slope, bend / 2, third, fourth, fifth], axis=-1)
