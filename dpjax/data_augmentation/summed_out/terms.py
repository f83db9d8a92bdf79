"""What is hidden of each record, and how it is summed out: over a list, over a window of numbers, or in closed form.

Given the parameters the records are independent. The density of what was released of record i is the sum
Σ_x f(x | θ, i) η(v_i | x), in one dimension or over few combinations. The densities η of the channels do not depend on
θ. They are computed once.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from dpjax._util.hoist import hoist
from dpjax._util.pytree import PyTree, static
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.mechanisms.base import draws_latent_normal
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics import leading_size, proper_density, select_indices
from dpjax.release import Microdata
from dpjax.release.fields import FieldValues

__all__ = ["Listed", "NormalField", "NotSummableError", "ReleasedField", "Terms", "Windows"]


IN_BLOCK, OF_ALL = 64, 2**12
"""Numbers of each record whose probabilities are added up at a time: at least, and of all records if these are few."""


class NotSummableError(ValueError):
    """What is hidden of the records cannot be summed out, though it can be listed: the sums are too long, or bend."""


class Terms(PyTree, abstract=True):
    """The densities of what was released of m records, with what is hidden of them summed out.

    Fields that are shared by all kinds: `known`, the records [m] with whatever stands in the place of what is hidden.
    """

    known: Records

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """``parameters -> [m]``: the log-density of what was released of each record."""
        raise NotImplementedError

    @property
    def is_approximate(self) -> bool:
        """Whether the sum may leave something out."""
        return False

    @property
    def hidden_field(self) -> str | None:
        """The name of the one field that is hidden; None if there are several, or there is none."""
        return None

    @property
    def size(self) -> int:
        """Over how many numbers is summed, for all records."""
        return leading_size(self.known)

    @property
    def is_limited(self) -> bool:
        """Whether more than what was released of single records limits the numbers, so that fitting gains little."""
        return False

    @property
    def length(self) -> int:
        """How many numbers of a record are summed over at most; 0 where that is the same for all releases of a kind."""
        return 0

    def padded(self, length: int) -> "Terms":
        """The same sums, over so many numbers of which the last have no density."""
        del length
        return self

    def left_out(self, model: Model, parameters: Parameters) -> Array:
        """A bound [m] of what the sum leaves out of each density, relative to it."""
        del model, parameters
        return jnp.zeros(leading_size(self.known))

    def through(self, release: Microdata) -> "Terms":
        """The same sums of values that came through other channels, maybe at parameters that a program traces."""
        raise NotImplementedError

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """A draw of the records of these rows [n], given what was released of them."""
        raise NotImplementedError


def log_released(release: Microdata, name: str, known: Records, numbers: Array) -> Array:
    """The log-density [w, n] of what was released of a field, given numbers [w, n] of it."""
    parts = release.noisy_parts(name)

    def at(row: Array) -> Array:
        terms = [release.of_seen(key, field.log_densities(known | {name: row})) for key, field in parts.items()]
        return sum(terms, start=jnp.zeros(row.shape))

    return proper_density(jax.vmap(at)(numbers))


def largest_released(release: Microdata, name: str, low: Array, high: Array) -> Array:
    """A bound [n] of the log-density of what was released of a field, whatever its number from `low` to `high` [n]."""
    parts = release.noisy_parts(name)
    terms = [release.of_seen(key, field.largest_densities(low, high)) for key, field in parts.items()]
    found = sum(terms, start=jnp.zeros(low.shape))
    # What is undefined is no bound.
    return jnp.where(jnp.isnan(found), jnp.inf, found)


class Listed(Terms):
    """Hidden fields of which all values are listed, or none that are hidden.

    Attributes
    ----------
    values
        The combinations of the hidden fields' values [c]; empty if nothing is hidden.
    log_released
        The log-density [c, m] of what was released, given each of them.
    """

    known: Records
    values: Records
    log_released: Array

    @property
    def hidden_field(self) -> str | None:
        """See `Terms`."""
        return next(iter(self.values)) if len(self.values) == 1 else None

    @property
    def size(self) -> int:
        """The combinations of all records."""
        return int(self.log_released.size)

    @property
    def least(self) -> Array:
        """The first value [m] of the list, of the one hidden field."""
        (values,) = self.values.values()
        return jnp.broadcast_to(values[0], self.log_released.shape[1:]).astype(int)

    def through(self, release: Microdata) -> "Listed":
        """See `Terms`."""
        return replace(self, log_released=release.log_densities_of_support(self.values).T)

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`."""
        weights = self.build_weights(model)
        return lambda parameters: self.add_up(weights(parameters))

    def add_up(self, weights: Array) -> Array:
        """The log-density [m] of what was released of each record, given those with each value of it [c, m]."""
        return proper_density(logsumexp(weights, axis=0))

    def build_weights(self, model: Model) -> Callable[[Parameters], Array]:
        """``parameters -> [c, m]``: the log-density of each record with these values, and of what was released."""

        def weigh(parameters: Parameters, values: Records, known: Records, log_released: Array) -> Array:
            if not values:
                return model.log_density(parameters, known)[None] + log_released
            if model.exchangeable and set(values) == set(known):
                return model.log_density(parameters, values)[:, None] + log_released

            def everywhere(level: Records) -> Array:
                filled = {name: jnp.broadcast_to(leaf, known[name].shape) for name, leaf in level.items()}
                return model.log_density(parameters, known | filled)

            return jax.vmap(everywhere)(values) + log_released

        call = hoist(weigh, parameter_shapes(model), self.values, self.known, self.log_released)
        return lambda parameters: proper_density(call(parameters))

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`."""
        if not self.values:
            return jax.tree.map(lambda leaf: leaf[rows], self.known)
        weights = self.build_weights(model)(parameters)[:, rows]
        cells, _ = select_indices(weights, jax.random.uniform(key, rows.shape))
        return self.fill(key, model, parameters, cells, rows)

    def fill(self, key: Key, model: Model, parameters: Parameters, places: Array, rows: Array) -> Records:
        """The records of these rows [n], with the values at places [n] of the list."""
        del key, model, parameters
        return jax.tree.map(lambda leaf: leaf[rows], self.known) | jax.tree.map(lambda leaf: leaf[places], self.values)


class Between(NamedTuple):
    """All numbers in the range of a window, of which it has but those where the density is not negligible.

    Attributes
    ----------
    first
        The first number of each range [m].
    span
        How many numbers are in it [m]; 0 if what is not in the window is as little dense within as without.
    log_largest
        The logarithm [m] of the largest density at numbers of the range that are not in the window.
    """

    first: Array
    span: Array
    log_largest: Array

    @property
    def block(self) -> int:
        """How many numbers of each record are added up at a time."""
        return max(IN_BLOCK, OF_ALL // len(self.span))

    def probability(self, log_density: Callable[[Array], Array], zeros: Array) -> Array:
        """The probability [m] of all numbers in the range, a few at a time, given ``numbers [m] -> [m]``."""

        def add(block: Array, total: Array) -> Array:
            places = block * self.block + jnp.arange(self.block)[:, None]
            numbers = self.first[None] + places.astype(self.first.dtype)
            densities = proper_density(jax.vmap(log_density)(numbers))
            return total + jnp.sum(jnp.where(places < self.span[None], jnp.exp(densities), 0), axis=0)

        return jax.lax.fori_loop(0, -(-jnp.max(self.span) // self.block), add, zeros)


class Windows(Terms):
    """One hidden field of whole numbers, summed over a window of its own for each record.

    Attributes
    ----------
    numbers
        The numbers of each window, in order [w, m]; there may be gaps between them.
    size_of_window
        How many of these are summed over [m].
    stride
        For how many numbers each of them stands [m].
    log_released
        The log-density [w, m] of what was released, given each number of the window; with the logarithm of the stride.
        It is ``-inf`` behind those that are summed over.
    log_outside
        The logarithm [m] of the largest such density outside of the window, or of a bound of it.
    between
        The numbers between those of the window, if for some record the density is smaller there than outside.
    seen
        The records of which something was released [m].
    field
        The name of the field.
    """

    known: Records
    numbers: Array
    size_of_window: Array
    stride: Array
    log_released: Array
    log_outside: Array
    between: Between | None
    seen: Array
    field: str = static()

    @property
    def is_approximate(self) -> bool:
        """A window leaves out what is beyond it."""
        return True

    @property
    def hidden_field(self) -> str:
        """The field."""
        return self.field

    @property
    def size(self) -> int:
        """The numbers of all windows."""
        return int(self.log_released.size)

    @property
    def listed(self) -> tuple[np.ndarray, np.ndarray]:
        """A key of each row and number that is summed over, and the log-density of what was released given it."""
        places, rows = np.nonzero(np.isfinite(np.asarray(self.log_released)))
        number, stride = (np.asarray(leaf, float) for leaf in (self.numbers, self.stride))
        keys = rows + len(stride) * number[places, rows]
        return keys, np.asarray(self.log_released)[places, rows] - np.log(stride[rows])

    @property
    def length(self) -> int:
        """The length of the windows."""
        return self.log_released.shape[0]

    def padded(self, length: int) -> "Windows":
        """See `Terms`."""
        more = ((0, length - self.length), (0, 0))
        nothing = Between(
            self.numbers[0], jnp.zeros_like(self.size_of_window), jnp.full_like(self.log_outside, -jnp.inf)
        )
        return replace(
            self,
            between=self.between or nothing,
            numbers=jnp.pad(self.numbers, more, mode="edge"),
            log_released=jnp.pad(self.log_released, more, constant_values=-jnp.inf),
        )

    def through(self, release: Microdata) -> "Windows":
        """See `Terms`: of windows without gaps and thinning, over the same numbers."""
        last = jnp.take_along_axis(self.numbers, self.size_of_window[None] - 1, axis=0)[0].astype(float)
        first, far = self.numbers[0].astype(float), jnp.full(last.shape, jnp.inf)
        released = log_released(release, self.field, self.known, self.numbers)
        is_summed = jnp.arange(self.length)[:, None] < self.size_of_window[None]
        # Of counts nothing is below 0.
        below = jnp.where(first == 0, -jnp.inf, largest_released(release, self.field, -far, first - 1))
        above = largest_released(release, self.field, last + 1, far)
        return replace(
            self, log_released=jnp.where(is_summed, released, -jnp.inf), log_outside=jnp.maximum(below, above)
        )

    def _build_densities(self, model: Model) -> Callable[[Parameters], Array]:
        """``parameters -> [w, m]``: the log-density of each record with each number in it."""

        def weigh(parameters: Parameters, numbers: Array, known: Records) -> Array:
            return jax.vmap(lambda row: model.log_density(parameters, known | {self.field: row}))(numbers)

        call = hoist(weigh, parameter_shapes(model), self.numbers, self.known)
        return lambda parameters: proper_density(call(parameters))

    @property
    def least(self) -> Array:
        """The first number [m] of each window."""
        return self.numbers[0]

    def build_weights(self, model: Model) -> Callable[[Parameters], Array]:
        """``parameters -> [w, m]``: the log-density of each record with each number, and of what was released of it."""
        densities = self._build_densities(model)
        return lambda parameters: densities(parameters) + self.log_released

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`."""
        weights = self.build_weights(model)
        return lambda parameters: self.add_up(weights(parameters))

    def add_up(self, weights: Array) -> Array:
        """The log-density [m] of what was released of each record, given those with each number of it [w, m]."""
        return jnp.where(self.seen, logsumexp(weights, axis=0), 0)

    def left_out(self, model: Model, parameters: Parameters) -> Array:
        """See `Terms`."""
        density = partial(model.log_density, parameters)
        return self.bound(self._build_densities(model)(parameters), lambda row: density(self.known | {self.field: row}))

    def bound(self, densities: Array, density: Callable[[Array], Array]) -> Array:
        """The largest density of the release outside of the window times what the model has there, relative [m].

        Parameters
        ----------
        densities
            The log-density [w, m] of each record with each number of its window.
        density
            ``numbers [m] -> [m]``: the same with any numbers.
        """
        is_summed = jnp.arange(len(densities))[:, None] < self.size_of_window[None]
        within = self.stride.astype(densities.dtype) * jnp.sum(jnp.where(is_summed, jnp.exp(densities), 0), axis=0)
        rounding = len(densities) * jnp.finfo(densities.dtype).eps
        largest = self.log_outside + jnp.log(jnp.maximum(1 - within, rounding))
        if self.between is not None:
            largest = jnp.where(self.between.span > 0, self._log_left_out(density, within), largest)
        bound = jnp.exp(largest - logsumexp(densities + self.log_released, axis=0))
        return jnp.where(self.seen & (largest > -jnp.inf), bound, 0)

    def _log_left_out(self, density: Callable[[Array], Array], within: Array) -> Array:
        """The same [m] where numbers in the range of the window are less dense than those outside of it."""
        assert self.between is not None
        in_range = self.between.probability(density, jnp.zeros_like(within))
        # Of sums of a few numbers that are added up one after another.
        added = self.between.span / self.between.block + self.between.block
        rounding = added.astype(within.dtype) * jnp.finfo(within.dtype).eps
        beyond, between = (jnp.log(jnp.maximum(mass, rounding)) for mass in (1 - in_range, in_range - within))
        return jnp.logaddexp(self.log_outside + beyond, self.between.log_largest + between)

    def errors_of_strides(self, model: Model, parameters: Parameters, strides: tuple[int, ...]) -> Array:
        """By how much the log-densities [m] of sums over every second number, say, are off: [stride, m]."""
        weights = self._build_densities(model)(parameters) + self.log_released
        whole = logsumexp(weights, axis=0)
        sums = [logsumexp(weights[::stride], axis=0) + jnp.log(stride) for stride in strides]
        return jnp.abs(jnp.stack(sums) - whole[None])

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`; the stride must be 1."""
        seen_key, fresh_key = jax.random.split(key)
        weights = self.build_weights(model)(parameters)[:, rows]
        places, _ = select_indices(weights, jax.random.uniform(seen_key, rows.shape))
        return self.fill(fresh_key, model, parameters, places, rows)

    def fill(self, key: Key, model: Model, parameters: Parameters, places: Array, rows: Array) -> Records:
        """The records of these rows [n], with the numbers at places [n], or new ones if nothing was released."""
        fresh = model.sample_records(key, parameters, len(rows))[self.field]
        chosen = jnp.where(self.seen[rows], self.numbers[places, rows], fresh)
        return jax.tree.map(lambda leaf: leaf[rows], self.known) | {self.field: chosen}


class ReleasedField(Terms, abstract=True):
    """One hidden field whose sum has a closed form, by what was released of it.

    Fields that are shared by all kinds: `released`, what was released of the field, and `seen`, the records of which
    something was released [m].
    """

    released: FieldValues
    seen: Array

    @classmethod
    def fits(cls, model: Model, field: FieldValues) -> bool:
        """Whether the model has such a field, and what was released of it is of this kind."""
        raise NotImplementedError

    @property
    def hidden_field(self) -> str:
        """See `Terms`."""
        return self.released.field

    def through(self, release: Microdata) -> Self:
        """See `Terms`."""
        return replace(self, released=next(iter(release.fields.values())))


class NormalField(ReleasedField):
    """One hidden field that is Normal given the parameters, behind noise with which its sum has a closed form.

    Attributes
    ----------
    released
        What was released of the field.
    seen
        The records of which something was released [m].
    """

    known: Records
    released: FieldValues
    seen: Array

    @classmethod
    def fits(cls, model: Model, field: FieldValues) -> bool:
        """Whether the field is Normal, behind noise given which it can be drawn."""
        return model.has("normal_field") and draws_latent_normal(field.channel)

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`."""
        noise: Any = self.released.channel.noise
        values = self.released.values

        def terms(parameters: Parameters) -> Array:
            return jnp.where(self.seen, noise.log_marginal_normal(values, *model.normal_field(parameters)), 0)

        return terms

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`."""
        seen_key, fresh_key = jax.random.split(key)
        noise: Any = self.released.channel.noise
        mean, scale = (jnp.broadcast_to(one, self.seen.shape)[rows] for one in model.normal_field(parameters))
        drawn = noise.sample_latent_normal(seen_key, self.released.values[rows], mean, scale)
        fresh = mean + scale * jax.random.normal(fresh_key, mean.shape, mean.dtype)
        found = jnp.where(self.seen[rows], drawn, fresh).astype(self.known[self.released.field].dtype)
        return jax.tree.map(lambda leaf: leaf[rows], self.known) | {self.released.field: found}
