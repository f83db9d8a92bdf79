"""Models whose records are data sets with an unknown number of rows.

One record of the model is a data set: rows of a fixed capacity, of which the first `num_records` are real. The other
rows are padding, as arrays have fixed shapes: the density ignores them, and functions that need all rows to be records
redraw them.
"""

from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp

from dpjax._util.pytree import static
from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records
from dpjax.models.same_parameters import SameParameters
from dpjax.numerics import tree_where
from dpjax.numerics.selection import key_of_branches
from dpjax.release.unknown_count import CountPrior

__all__ = ["NUMBER", "DataSetsModel", "check_names_free", "join", "split", "unpack"]

NUMBER = "num_records"
"""Name of the field with the number of real rows, int []."""

MAX_SIZES = 4
"""Largest number of array sizes for which a parameter update is compiled."""


class DataSetsModel(SameParameters):
    """Records ``{field: [capacity, ...], "num_records": [] int}``, each a data set of another model.

    With n from its prior and rows x_i i.i.d. from f(· | θ), the density of a data set is p(n) Π_{i ≤ n} f(x_i | θ),
    that of n ordered records. The parameters are those of the other model.

    Parameters
    ----------
    model
        The other model, of exchangeable records.
    prior
        The prior of the number of records.
    capacity
        The number of rows of a data set, the largest possible number of records.

    Notes
    -----
    The update and the non-centred form are the other model's, applied to the real rows and to padding drawn from
    f(· | θ) at the current parameters. They leave p(θ | real rows) invariant: under ∝ p(θ) p(n) Π_{i ≤ N} f(x_i | θ),
    where N may depend on n, the parameters and the real rows have the intended distribution, and the padding is drawn
    from f(· | θ) given these. Padding slows mixing like missing data; so the update uses the shortest of a few arrays
    that holds the real rows, of which at most half is padding.
    """

    model: Model
    prior: CountPrior = static()
    capacity: int = static()

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Data sets drawn given the parameters."""
        number_key, row_key = jax.random.split(key)
        parameters, known = take_number(parameters)
        number = jax.vmap(self.prior.sample)(jax.random.split(number_key, n)) if known is None else jnp.full(n, known)
        # Numbers above the capacity have negligible probability.
        return join(self.draw_rows(row_key, parameters, n), jnp.minimum(number, self.capacity))

    def draw_rows(self, key: Key, parameters: Parameters, n: int) -> Records:
        """All rows of n data sets."""
        return fold(self.model.sample_records(key, parameters, n * self.capacity), n)

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each data set [n]."""
        rows, real = unpack(records)
        # The first row is real if any is: replacing the padding by it keeps gradients finite.
        filled = tree_where(real, rows, jax.tree.map(lambda leaf: leaf[:, :1], rows))
        terms = self.model.log_density(parameters, unfold(filled)).reshape(real.shape)
        log_number = self.prior.log_probability(records[NUMBER]).astype(terms.dtype)
        return jnp.sum(jnp.where(real, terms, 0), axis=1) + log_number

    def complete(self, key: Key, parameters: Parameters, records: Records) -> Records:
        """The rows of data sets with new padding."""
        rows, real = unpack(records)
        return tree_where(real, rows, self.draw_rows(key, parameters, len(real)))

    def has(self, member: str) -> bool:
        """Whether the other model has an update or a non-centred form, which is applied to all rows, too."""
        return super().has(member) and (member not in ("update", "noncentred") or self.model.has(member))

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """The other model's update, of the shortest array that holds the real rows."""
        row_key, update_key = jax.random.split(key)
        rows = self.complete(row_key, parameters, records)
        own_key = key_of_branches(update_key)

        def of_first(size: int) -> Parameters:
            return self.model.update(own_key(), parameters, unfold(jax.tree.map(lambda leaf: leaf[:, :size], rows)))

        sizes = halve(self.capacity, max(self.prior.bounds[0], 1))
        fitting = jnp.sum(jnp.asarray(sizes) >= jnp.max(records[NUMBER]))
        return jax.lax.switch(fitting - 1, [lambda size=size: of_first(size) for size in sizes])

    @property
    def noncentred(self) -> NonCentred:
        """The noise of all rows, with the number of real rows fixed."""
        return noncentred(self.model.noncentred, self.complete)

    def reported(self, records: Records) -> Records:
        """The number of real rows of the first data set."""
        return {NUMBER: records[NUMBER][0]}


def noncentred(inner: NonCentred, complete: Callable[[Key, Parameters, Records], Records]) -> NonCentred:
    """The non-centred form of data sets: the noise of all rows, with the number of real rows fixed."""

    def noise(key: Key, parameters: Parameters, records: Records) -> Records:
        row_key, noise_key = jax.random.split(key)
        rows = complete(row_key, parameters, records)
        return {"rows": inner.noise(noise_key, parameters, unfold(rows)), NUMBER: records[NUMBER]}

    def records(parameters: Parameters, noise: Records) -> Records:
        number = noise[NUMBER]
        return join(fold(inner.records(parameters, noise["rows"]), len(number)), number)

    def log_density(parameters: Parameters, noise: Records) -> Array:
        assert inner.log_density is not None
        return jnp.sum(inner.log_density(parameters, noise["rows"]).reshape(len(noise[NUMBER]), -1), axis=1)

    def possible(parameters: Parameters, noise: Records) -> Array:
        assert inner.possible is not None
        return jnp.all(inner.possible(parameters, noise["rows"]).reshape(len(noise[NUMBER]), -1), axis=1)

    return NonCentred(
        noise,
        records,
        log_density=None if inner.log_density is None else log_density,
        forms=inner.forms,
        coordinates=inner.coordinates,
        possible=None if inner.possible is None else possible,
    )


def halve(capacity: int, least: int) -> tuple[int, ...]:
    """The capacity, its half, and so on, at most `MAX_SIZES`, and none below the least number of records."""
    sizes = [capacity]
    while len(sizes) < MAX_SIZES and (sizes[-1] + 1) // 2 >= least and sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    return tuple(sizes)


def check_names_free(names: Iterable[str]) -> None:
    """Raise if the name of the number of records is among those that a model gives."""
    if NUMBER in names:
        fail("model", f"a name {NUMBER!r}", "other names", "The number of records is reported under it: rename yours.")


def take_number(parameters: Parameters) -> tuple[Parameters, Array | None]:
    """The parameters, and the number of records if posterior draws include it, else None."""
    return {name: leaf for name, leaf in parameters.items() if name != NUMBER}, parameters.get(NUMBER)


def split(records: Records) -> tuple[Records, Array]:
    """The rows of one or several data sets, and their numbers of real rows."""
    return {name: leaf for name, leaf in records.items() if name != NUMBER}, records[NUMBER]


def join(rows: Records, number: Array) -> Records:
    """One or several data sets from their rows and numbers of real rows."""
    return {**rows, NUMBER: number}


def unpack(records: Records) -> tuple[Records, Array]:
    """The rows [m, capacity, ...] of data sets [m], and which of them are real [m, capacity]."""
    rows, number = split(records)
    capacity = jax.tree.leaves(rows)[0].shape[1]
    return rows, jnp.arange(capacity)[None] < number[:, None]


def fold(rows: Records, m: int) -> Records:
    """Rows [m * capacity, ...] as those of m data sets [m, capacity, ...]."""
    return jax.tree.map(lambda leaf: leaf.reshape(m, -1, *leaf.shape[1:]), rows)


def unfold(rows: Records) -> Records:
    """The rows of m data sets [m, capacity, ...] on one axis [m * capacity, ...]."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)
