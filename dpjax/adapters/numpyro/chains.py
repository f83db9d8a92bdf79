"""Chains in time as distributions of one record: states behind reports, and Normal numbers behind noise."""

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution, GaussianRandomWalk, constraints

from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_array, check_count, fail, is_traced, read_numbers
from dpjax.adapters.numpyro.trace import SiteLayout, draw, trace_statements, unwrap
from dpjax.base import Array, Key
from dpjax.numerics.chains import HiddenNormals, HiddenStates

__all__ = ["MarkovChain", "NormalChain", "chain_of", "is_chain"]

OFF = 1e-3
"""By how much probabilities may miss 1."""


class Chain(NamesArguments, Distribution):
    """A distribution of numbers [t] of which `_rows` gives the sums, with chains side by side in a leading axis."""

    num_times: int

    def _rows(self) -> Any:
        """The chain, with a leading axis [1] or [m] in place of the batch shape."""
        raise NotImplementedError

    def _unseen(self, number: int) -> tuple[Array, ...]:
        """What is seen [number, t, ...] of numbers of which nothing is seen."""
        raise NotImplementedError

    def _seen(self, values: Array) -> tuple[Array, ...]:
        """What is seen of numbers [m, t] that are known."""
        raise NotImplementedError

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, t]."""
        shape = (*sample_shape, *self.batch_shape)
        chain = jax.tree.map(lambda leaf: repeat_rows(leaf, prod(shape)), self._rows())
        return chain.draw(key, *self._unseen(prod(shape))).reshape(*shape, self.num_times)

    def log_prob(self, value: Array, intermediates: Any = None) -> Array:
        """The log-density [...] of numbers [..., t]."""
        del intermediates
        shape = jnp.broadcast_shapes(jnp.shape(value)[:-1], self.batch_shape)
        flat = jnp.broadcast_to(jnp.asarray(value), (*shape, self.num_times)).reshape(-1, self.num_times)
        chain = jax.tree.map(lambda leaf: repeat_rows(leaf, len(flat)), self._rows())
        return chain.log_density(*self._seen(flat)).reshape(shape)


def repeat_rows(leaf: Array, number: int) -> Array:
    """Rows [1, ...] as they are, and rows [m, ...] repeated as a whole until there are so many."""
    return leaf if len(leaf) in (1, number) else jnp.tile(leaf, (number // len(leaf), *[1] * (leaf.ndim - 1)))


class MarkovChain(Chain):
    """The states of one record at several times, as a NumPyro distribution: a Markov chain.

    For a record site of a model in NumPyro. What was released of each time then goes through its noise by itself. The
    hidden states are summed out by the forward recursion, at a cost of t k², and drawn backwards in time.

    Parameters
    ----------
    initial : [..., k]
        The probability of each state at the first time.
    transition : [k, k], or [..., t - 1 or 1, k, k]
        Row j holds that of each state after state j. With three axes or more it has an axis of times, which may have
        the length 1. Axes before that are those of the records.
    num_times
        The number t of times.
    values
        The whole number that each state shows [k], which is what records have. Several states may show the same. By
        default the number of the state.

    Raises
    ------
    TypeError, ValueError
        If the shapes do not fit each other, or known numbers are no probabilities.

    Examples
    --------
    >>> import dpjax, jax.numpy as jnp
    >>> chain = dpjax.MarkovChain(jnp.array([1.0, 0.0]), jnp.array([[0.75, 0.25], [0.0, 1.0]]), num_times=3)
    >>> round(float(jnp.exp(chain.log_prob(jnp.array([0, 0, 1])))), 4)
    0.1875
    """

    pytree_data_fields = ("initial", "transition")
    pytree_aux_fields = ("num_times", "values")
    arg_constraints = {"initial": constraints.simplex}  # noqa: RUF012 - as NumPyro has it

    def __init__(self, initial: Any, transition: Any, num_times: int, *, values: Any = None) -> None:
        self.initial, transition = as_floats("initial", initial), as_floats("transition", transition)
        self.num_times = check_count("num_times", num_times, "Pass the number of times.")
        check_tables(self.initial, transition, num_times)
        self.transition = transition if transition.ndim > 2 else transition[None]
        number = self.initial.shape[-1]
        self.values = check_values(np.arange(number) if values is None else values, number)
        batch = jnp.broadcast_shapes(self.initial.shape[:-1], self.transition.shape[:-3])
        super().__init__(batch, (num_times,))

    @property
    def support(self) -> Any:
        """Whole numbers from the least to the greatest value."""
        return constraints.independent(constraints.integer_interval(min(self.values), max(self.values)), 1)

    def _rows(self) -> HiddenStates:
        """See `Chain`."""
        initial = self.initial.reshape(-1, self.initial.shape[-1])
        transition = self.transition.reshape(-1, *self.transition.shape[-3:])
        return HiddenStates(initial, transition, jnp.asarray(self.values)[None])

    def _unseen(self, number: int) -> tuple[Array]:
        """See `Chain`."""
        return (jnp.zeros((number, self.num_times, len(self.values)), self.initial.dtype),)

    def _seen(self, values: Array) -> tuple[Array]:
        """See `Chain`."""
        is_shown = values[..., None] == jnp.asarray(self.values)[None, None]
        return (jnp.where(is_shown, 0.0, -jnp.inf).astype(self.initial.dtype),)


class NormalChain(Chain):
    """The numbers of one record at several times, as a NumPyro distribution: an autoregression about a mean.

    For a record site of a model in NumPyro. Behind Gaussian noise the numbers are integrated out by Kalman's recursion,
    at a cost of t. They are ``loc + x + nugget * noise``. There x begins with the standard deviation `start`, and then
    becomes ``coefficient * x + step * noise``. With a coefficient of 1 that is a random walk, and with a nugget beside
    it a local level. Behind other noise they are imputed one by one. It is then faster to have the series among
    the parameters: see the guide on series and chains.

    Parameters
    ----------
    loc : [..., t] or []
        The mean of each number.
    coefficient : [...]
        What is left of x from one time to the next.
    step : [...]
        The standard deviation of what is added to x.
    start : [...]
        The standard deviation of the first x. That of a stationary series is ``step / sqrt(1 - coefficient**2)``.
    num_times
        The number t of times.
    nugget : [...]
        The standard deviation of what each time has of its own.

    Raises
    ------
    TypeError, ValueError
        If the shapes do not fit each other.

    Examples
    --------
    >>> import dpjax, jax.numpy as jnp
    >>> walk = dpjax.NormalChain(0.0, coefficient=1.0, step=1.0, start=1.0, num_times=2)
    >>> round(float(walk.log_prob(jnp.array([1.0, 1.0]))), 3)
    -2.338
    """

    pytree_data_fields = ("loc", "coefficient", "step", "start", "nugget")
    pytree_aux_fields = ("num_times",)
    arg_constraints = {"step": constraints.positive, "start": constraints.positive}  # noqa: RUF012
    support = constraints.real_vector

    def __init__(
        self,
        loc: Any,
        coefficient: Any,
        step: Any,
        start: Any,
        num_times: int,
        *,
        nugget: Any = 0.0,
    ) -> None:
        self.num_times = check_count("num_times", num_times, "Pass the number of times.")
        loc = as_floats("loc", loc)
        if loc.ndim and loc.shape[-1] != num_times:
            fail("loc", f"shape {list(loc.shape)}", f"a last axis of {num_times} times", "Pass one for each time.")
        self.loc = jnp.broadcast_to(loc, (*loc.shape[:-1], num_times))
        given = {"coefficient": coefficient, "step": step, "start": start, "nugget": nugget}
        numbers = [as_floats(name, one, LIMITS.get(name)) for name, one in given.items()]
        batch = jnp.broadcast_shapes(self.loc.shape[:-1], *(one.shape for one in numbers))
        self.coefficient, self.step, self.start, self.nugget = numbers
        super().__init__(batch, (num_times,))

    def _rows(self) -> HiddenNormals:
        """See `Chain`."""
        numbers = (jnp.ravel(one) for one in (self.start, self.coefficient, self.step, self.nugget))
        return HiddenNormals(self.loc.reshape(-1, self.num_times), *numbers)

    def _unseen(self, number: int) -> tuple[Array, Array]:
        """See `Chain`."""
        nothing = jnp.zeros((number, self.num_times), self.loc.dtype)
        return nothing, jnp.full_like(nothing, jnp.inf)

    def _seen(self, values: Array) -> tuple[Array, Array]:
        """See `Chain`."""
        return values, jnp.zeros_like(values)


def chain_of(distribution: Any) -> Any:
    """The sums over the numbers of a record that is a chain; None if its distribution is none."""
    inner = unwrap(distribution)
    if isinstance(inner, GaussianRandomWalk):
        scale, one = inner.scale, jnp.ones_like(inner.scale)
        inner = NormalChain(0.0, one, scale, scale, inner.num_steps)
    return inner._rows() if isinstance(inner, Chain) else None


def is_chain(layout: SiteLayout) -> bool:
    """Whether the records have one field, a chain."""
    statements = trace_statements(lambda key: layout.run(layout.size, draw(key)))
    found = [statement["fn"] for statement in statements if statement.get("name") in layout.fields]
    return not layout.known and len(found) == 1 and isinstance(unwrap(found[0]), (Chain, GaussianRandomWalk))


LIMITS: dict[str, Any] = {
    "step": (lambda array: array > 0, "positive numbers"),
    "start": (lambda array: array > 0, "positive numbers"),
    "nugget": (lambda array: array >= 0, "numbers that are not negative"),
}


def as_floats(name: str, value: Any, limit: Any = None) -> Array:
    """Numbers as an array of floats; an error if they are known and not finite, or beyond a limit."""
    accept, expected = limit or (np.isfinite, "finite numbers")
    check_array(name, value, accept, expected, "Pass an array, or a parameter of the model.")
    return jnp.asarray(value, float)


def check_tables(initial: Array, transition: Array, num_times: int) -> None:
    """Raise unless the tables of a chain of states fit each other, and are probabilities where they are known."""
    number = initial.shape[-1] if initial.ndim else 0
    if number < 1:
        fail("initial", f"shape {list(initial.shape)}", "probabilities [..., k]", "Pass one for each state.")
    if transition.ndim < 2 or transition.shape[-2:] != (number, number):
        expected, remedy = f"[..., {number}, {number}], as there are {number} states", "Pass a row for each state."
        fail("transition", f"shape {list(transition.shape)}", expected, remedy)
    if transition.ndim > 2 and transition.shape[-3] not in (1, max(num_times - 1, 1)):
        expected = f"an axis of {max(num_times - 1, 1)} times or of 1 before the last two"
        remedy = "Tables of records have an axis of times, too: transition[:, None]."
        fail("transition", f"shape {list(transition.shape)}", expected, remedy)
    for name, table in (("initial", initial), ("transition", transition)):
        if is_traced(table):
            continue
        rows = np.asarray(table)
        if np.any(rows < 0) or np.any(np.abs(rows.sum(axis=-1) - 1) > OFF):
            fail(name, "numbers that are negative or miss the sum 1", "probabilities", "Divide each row by its sum.")


def check_values(values: Any, number: int) -> tuple[int, ...]:
    """The whole number that each state shows."""
    expected, remedy = f"whole numbers [{number}], one for each state", "Pass integers that are known."
    array = read_numbers("values", values, expected, remedy)
    if array.shape != (number,) or array.dtype.kind not in "iub":
        given = f"{array.dtype}{list(array.shape)}"
        fail("values", given, expected, remedy)
    return tuple(array.tolist())
