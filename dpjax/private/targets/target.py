"""The posterior that a private run targets: records independent given the parameters, and a prior."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from numbers import Number
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax._util.dependence import used_arguments
from dpjax._util.jit import in_full_precision
from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import (
    check_count,
    check_function,
    describe,
    fail,
    is_traced,
    leaves_of,
    name_of,
    summarize_error,
)
from dpjax.base import Array, Model
from dpjax.models.checks import check_model
from dpjax.numerics.linear_algebra import product
from dpjax.private.entries import check_array_type, convert, jax_type
from dpjax.private.fixed_point import BOUND_BITS, LARGEST_BLOCK, MOST_RECORDS
from dpjax.private.people import UNSAID, RowsOfPeople, Unsaid, check_said
from dpjax.private.targets.people import add_rows, gather, split_people

__all__ = ["Target", "TargetTerms", "model_target", "target"]

CHUNK_SIZE = 256
"""Number of records whose gradients are in memory at once on a CPU.

Those of 4 chains in 2 dimensions then fit a core's first cache: with 512 a record takes twice as long. In 10 dimensions
times from 256 to 1024 differ by a tenth.
"""

NUMBERS_AT_ONCE = 2**24
"""Most numbers of the records of a chunk, and of their gradients, on an accelerator, which takes chunks in turn."""

MOST_HELD = 64
"""Numbers that an array may have which a function holds, and of which no one has said that it is public."""


class TargetTerms(NamedTuple):
    """The parts of a log-posterior on the unconstrained scale.

    Attributes
    ----------
    log_likelihood
        ``(parameters, record) -> []``: the log-density of one record.
    log_prior
        ``parameters -> []``, with the log-Jacobian of `constrain`.
    constrain
        From the unconstrained parameters to those that are reported; the identity if there is no bound.
    """

    log_likelihood: Callable[[Any, Any], Array]
    log_prior: Callable[[Any], Array]
    constrain: Callable[[Any], Any]


@frozen_pytree
@dataclass(frozen=True, eq=False)
class Target:
    """A log-posterior as a sum over records and a prior, on raveled unconstrained parameters [d].

    Attributes
    ----------
    records
        The records in chunks, a pytree with leading axes [chunks, chunk]; the last chunk is filled up with copies of
        the first record.
    count
        How many of them count [], from the first on: n, or 0 to leave all out.
    terms
        The log-posterior's parts.
    unravel
        From a vector [d] to the parameters.
    dimension
        d.
    num_records
        n; the number of people if several rows can be one person's.
    dtype
        Of the parameters.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> records = {"y": jnp.array([0.2, -0.4, 1.1, 0.3])}
    >>> target = private.target(
    ...     lambda theta, record: -0.5 * (record["y"] - theta) ** 2,
    ...     lambda theta: -0.5 * theta**2,
    ...     records,
    ...     position=jnp.zeros(()),
    ... )
    >>> target.dimension, target.num_records
    (1, 4)
    >>> round(float(target.log_prior(jnp.ones(1))), 3)
    -0.5
    """

    records: Any = field(repr=False)
    count: Array = field(repr=False)
    terms: TargetTerms = field(metadata={"static": True}, repr=False)
    unravel: Callable[[Array], Any] = field(metadata={"static": True}, repr=False)
    dimension: int = field(metadata={"static": True})
    num_records: int = field(metadata={"static": True}, repr=False)
    dtype: Any = field(metadata={"static": True}, repr=False)

    @in_full_precision
    def log_likelihood(self, vector: Array, record: Any) -> Array:
        """The log-density [] of one record at a vector [d]."""
        return self.terms.log_likelihood(self.unravel(vector), record)

    @in_full_precision
    def log_prior(self, vector: Array) -> Array:
        """The log-density [] of the prior at a vector [d], up to a constant."""
        return self.terms.log_prior(self.unravel(vector))

    def scaled(self, scale: Array) -> "Target":
        """The same log-posterior as a function of the vector u [d] with θ = S u, for a matrix S [d, d]."""
        return replace(self, unravel=lambda vector: self.unravel(product(scale, vector)))


@names_arguments
def target(
    log_likelihood: Callable[[Any, Any], Array],
    log_prior: Callable[[Any], Array],
    records: Any,
    position: Any,
    *,
    chunk_size: int | None = None,
    people: str | Unsaid | None = UNSAID,
    max_rows: int | None = None,
    normalise: Callable[[Any], Any] | None = None,
    public_arrays: Any = None,
) -> Target:
    """The posterior of plain functions of parameters in which every real value is allowed.

    Parameters
    ----------
    log_likelihood
        ``(parameters, record) -> []``, for one record: a pytree like `records` without its leading axis.
    log_prior
        ``parameters -> []``.
    records
        The confidential records, a pytree of arrays of numbers with leading axis [n]. An entry that is not finite, or
        out of the range of JAX's type, counts as 0: an error would reveal it before any charge. Impute such entries
        beforehand.
    position
        Parameters of which the structure, shapes and types are taken.
    chunk_size
        How many records' gradients are held at once. By default 256 on a CPU, and on accelerators as many as have 2^24
        numbers, at most 2^19. Clipped sums do not depend on it, not even in their last digit.
    people
        The field of `records` that says whose a row is, if one person can have several rows. All rows of a person are
        then one record, of which the log-densities are added up before anything is clipped. So bounds, sensitivities
        and promises are about people. None states that each row is another person's. It can be left out if the
        log-likelihood depends on all fields.
    max_rows
        The most rows of one person that are used, with ``people``. If there are more, which of them are used follows
        from their number alone.
    normalise
        A function of one identifier, such as ``str.strip``, for whole numbers, texts or bytes. By default they are
        compared as they stand: " 7", "7" and 7 are different people. A row of which it fails, or that has no
        identifier, is left out.
    public_arrays
        A pytree of the public arrays of more than 64 numbers that the functions hold, such as a table of prices. Only
        their shapes are compared.

    Raises
    ------
    TypeError, ValueError
        If the records are not numbers or of unequal number, or a function does not return one number. If a function
        holds an array of more than 64 numbers, longer than the parameters and the fields of one record, that is not
        among `public_arrays`. It may be confidential, and what a function holds is neither clipped nor noised. If a
        field is not used, and nothing is said of people. No message depends on a value of a record, nor on their
        number.

    Examples
    --------
    >>> from dpjax.private import target
    >>> import jax.numpy as jnp
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> posterior = target(density, lambda mean: -(mean**2) / 2, jnp.array([0.0, 1.0, 9.0]), jnp.zeros(()))
    >>> posterior.dimension, posterior.num_records
    (1, 3)
    """
    for name, function in {"log_likelihood": log_likelihood, "log_prior": log_prior}.items():
        check_function(name, function, "that returns a number")
    records, rows = split_people(records, people, max_rows, normalise)
    terms = TargetTerms(log_likelihood, log_prior, lambda parameters: parameters)
    built = build_target(terms, records, position, chunk_size, rows, read_public(public_arrays))
    if people is UNSAID:
        check_said(people, unused_fields(built))
    return built


@names_arguments
def model_target(
    model: Model,
    records: dict[str, Any],
    *,
    chunk_size: int | None = None,
    people: str | Unsaid | None = UNSAID,
    max_rows: int | None = None,
    normalise: Callable[[Any], Any] | None = None,
    public_arrays: Any = None,
) -> Target:
    """The posterior of a complete-data model of exchangeable records, on its unconstrained scale.

    Parameters
    ----------
    model
        Such as `dpjax.models` or `dpjax.from_numpyro` builds.
    records
        The confidential records, by the names of the model's fields, with leading axis [n]; see `target`.
    chunk_size
        As in `target`.
    people
        As in `target`; the field is none of the model's.
    max_rows
        As in `target`.
    normalise
        As in `target`.
    public_arrays
        As in `target`, beside those that are numbers of the model.

    Raises
    ------
    TypeError, ValueError
        As in `target`; or if the records are not identically distributed, with covariates that belong to `records`.
        If the model's functions do not fit each other, see `dpjax.models.check_model`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import dpjax
    >>> model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    >>> dpjax.private.model_target(model, {"y": jnp.array([0.0, 1.0, 9.0])}).dimension
    1
    """
    records, rows = split_people(records, people, max_rows, normalise)
    check_fields(model, records)
    check_model(model)
    if not model.exchangeable or model.num_records is not None:
        given = "records that are not identically distributed"
        fail("model", given, "identically distributed records", "Use dpjax.private.numpyro_target.")

    def prior(unconstrained: Any) -> Array:
        return model.log_prior(model.constrain(unconstrained)) + model.log_jacobian(unconstrained)

    def likelihood(unconstrained: Any, record: dict[str, Any]) -> Array:
        one = jax.tree.map(lambda leaf: leaf[None], record)
        return model.log_density(model.constrain(unconstrained), one)[0]

    def start() -> Any:
        return model.unconstrain(model.sample_prior(jax.random.key(0)))  # for its shapes only

    terms = TargetTerms(likelihood, prior, model.constrain)
    return build_target(terms, records, jax.eval_shape(start), chunk_size, rows, read_public(public_arrays, model))


def read_public(public_arrays: Any, known: Any = None) -> set[tuple[int, ...]]:
    """The shapes of the arrays that functions may hold: those that are stated to be public, and those known to be."""
    remedy = "Pass the public arrays that the functions hold."
    for leaf in () if public_arrays is None else leaves_of("public_arrays", public_arrays, remedy):
        if not isinstance(leaf, (np.ndarray, jax.Array)) or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            fail("public_arrays", name_of(leaf), "a pytree of arrays", remedy, error=TypeError)
    return {np.shape(leaf) for leaf in jax.tree.leaves((public_arrays, known)) if hasattr(leaf, "shape")}


def build_target(
    terms: TargetTerms,
    records: Any,
    position: Any,
    chunk_size: int | None,
    rows: RowsOfPeople | None = None,
    public: Collection[tuple[int, ...]] = (),
) -> Target:
    """A target with its records checked and cut into chunks; of the position only the shapes count.

    With `rows` its records are people. Functions may hold arrays of the shapes in `public`.
    """
    if rows is not None:
        build_target(terms, records, position, chunk_size, None, public)  # raises as for rows of many people
        terms, records = terms._replace(log_likelihood=add_rows(terms.log_likelihood)), gather(records, rows)
    size = check_records(records)
    records = jax.tree.map(hold, records)
    check_position(position)
    vector, unravel = ravel_pytree(
        jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf), jnp.result_type(leaf)), position)
    )
    check_precision(vector, size)
    wanted = default_chunk(records, vector.size) if chunk_size is None else check_count("chunk_size", chunk_size)
    # One record and none have arrays of the same shapes.
    chunk_size = min(wanted, max(size, 1), LARGEST_BLOCK)
    num_chunks = max(1, -(-size // chunk_size))
    chunks = jax.tree.map(lambda leaf: cut(jnp.asarray(leaf), num_chunks, chunk_size), records)
    built = Target(chunks, jnp.asarray(size, jnp.int32), terms, unravel, vector.size, size, vector.dtype)
    check_terms(built, vector, public)
    return built


def default_chunk(records: Any, dimension: int) -> int:
    """How many records an accelerator or a CPU takes at once, by the numbers of one and of its gradient."""
    if jax.default_backend() == "cpu":
        return CHUNK_SIZE
    numbers = dimension + sum(prod(jnp.shape(leaf)[1:]) for leaf in jax.tree.leaves(records))
    return max(NUMBERS_AT_ONCE // numbers, 1)


def check_precision(vector: Array, size: int) -> None:
    """Raise unless the parameters are numbers in which sums can be held, and places of records are integers."""
    if vector.dtype.name not in BOUND_BITS:
        remedy = "Pass floating-point parameters."
        fail("position", f"parameters of {vector.dtype}", "real numbers, float32 or float64", remedy, error=TypeError)
    if size > MOST_RECORDS:
        fail("records", f"more than {MOST_RECORDS:,} of them", "no more", "Take a part of them at random.")


def cut(leaf: Array, num_chunks: int, chunk_size: int) -> Array:
    """Rows [n, ...] as [num_chunks, chunk_size, ...], filled up with the first row, or with zeros if there is none."""
    leaf = leaf if len(leaf) else jnp.zeros((1, *leaf.shape[1:]), leaf.dtype)
    filling = jnp.broadcast_to(leaf[:1], (num_chunks * chunk_size - len(leaf), *leaf.shape[1:]))
    return jnp.concatenate([leaf, filling]).reshape(num_chunks, chunk_size, *leaf.shape[1:])


def check_records(records: Any) -> int:
    """The number of records, or an error that reveals nothing of their values."""
    if hasattr(records, "columns"):
        remedy = "Pass such as {name: table[name].to_numpy() for name in table.columns}."
        fail("records", f"a {type(records).__name__}", "arrays by name", remedy, error=TypeError)
    leaves = leaves_of("records", records, "Name the fields by texts.")
    if other := [leaf for leaf in leaves if not isinstance(leaf, (np.ndarray, jax.Array))]:
        given = f"a field of type {type(other[0]).__name__}"
        fail("records", given, "arrays of numbers", "Pass such as numpy.array(field, float).", error=TypeError)
    lengths = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves}
    if len(lengths) != 1 or not all(np.ndim(leaf) for leaf in leaves):
        remedy = "Give every field one entry for each record."
        fail("records", "fields of unequal length or of none", "arrays with one leading axis [n]", remedy)
    for leaf in leaves:
        if not is_traced(leaf):  # unless data are simulated and used in one program
            check_array_type(leaf)
    return int(lengths.pop())


def hold(leaf: Any) -> Any:
    """A field [n, ...] in the type that JAX has for it, with 0 in place of an entry that this does not hold.

    An error would reveal, before any charge, that there is one.
    """
    if is_traced(leaf):
        return leaf
    values = np.asarray(leaf)
    return convert(values, jax_type("records", values.dtype))[0]


def record_of(target: Target) -> Any:
    """The shapes and types of one record."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), target.records)


def check_terms(built: Target, vector: Array, public: Collection[tuple[int, ...]]) -> None:
    """Raise unless both functions return one real number, and hold no arrays but small ones and of public shapes."""
    likelihood = shape_of("log_likelihood", built.log_likelihood, public, vector, record_of(built))
    prior = shape_of("log_prior", built.log_prior, public, vector)
    for name, value in (("log_likelihood", likelihood), ("log_prior", prior)):
        if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
            remedy = "Sum over the coordinates of one record, and leave the sum over records to the sampler."
            fail(name, f"a function that returns {value}", "one real number", remedy, error=TypeError)


def unused_fields(target: Target) -> str:
    """The fields on which the log-likelihood does not depend, in words; nothing if there is none."""
    vector = jnp.zeros(target.dimension, target.dtype)
    used = used_arguments(lambda record: target.log_likelihood(vector, record), record_of(target))
    unused = [jax.tree_util.keystr(path) for path, is_used in jax.tree.leaves_with_path(used) if not is_used]
    return f"fields {', '.join(unused)} that are not used" if unused else ""


def check_position(position: Any) -> None:
    """Raise unless the parameters are arrays, or shapes, of some numbers."""
    remedy = "Pass the parameters of one chain, such as jnp.zeros(2)."
    leaves = [leaf for leaf in leaves_of("position", position, remedy) if leaf is not None]
    are_plain = all(isinstance(leaf, (Number, np.ndarray, jax.Array, jax.ShapeDtypeStruct)) for leaf in leaves)
    kinds = [getattr(leaf, "dtype", None) or np.asarray(leaf).dtype for leaf in leaves] if are_plain else []
    are_numbers = are_plain and all(jnp.issubdtype(kind, jnp.number) and kind.char not in "gG" for kind in kinds)
    if not are_numbers or not any(prod(jnp.shape(leaf)) for leaf in leaves):
        fail("position", describe(position), "a pytree of at least one array of numbers", remedy, error=TypeError)


def check_fields(model: Any, records: Any) -> None:
    """Raise unless there is a model, and the records are a dict of its fields."""
    if not isinstance(model, Model):
        remedy = "Build it with dpjax.models or dpjax.from_numpyro."
        fail("model", f"a {type(model).__name__}", "a dpjax.Model", remedy, error=TypeError)
    if not isinstance(records, Mapping):
        remedy = "Pass {field: values}, by the names of the model's fields."
        fail("records", f"a {type(records).__name__}", "a dict of arrays", remedy, error=TypeError)
    fields = sorted(jax.eval_shape(lambda key: draw_record(model, key), jax.eval_shape(jax.random.key, 0)))
    if set(records) != set(fields):
        remedy = "Name them as the model does, and pass people= if one says whose a record is."
        fail("records", f"fields {sorted(records, key=str)}", f"the model's, {fields}", remedy)


def draw_record(model: Model, key: Array) -> Any:
    """One record of the prior, for its fields."""
    return model.sample_records(key, model.sample_prior(key), 1)


def shape_of(name: str, function: Callable[..., Any], public: Collection[tuple[int, ...]], *arguments: Any) -> Any:
    """The shape and type of what a function of a target returns.

    Raises
    ------
    TypeError, ValueError
        If it fails, or holds an array that may be records: what it knows of these is neither clipped nor noised there.
    """
    try:
        traced, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    except Exception as error:
        given = f"a function that fails ({summarize_error(error)})"
        remedy = "It is called with the parameters of one chain, and the likelihood with one record besides."
        try:
            fail(name, given, "one that returns a number", remedy, error=TypeError)
        except TypeError as refused:
            raise refused from error
    widest = max((size for leaf in jax.tree.leaves(arguments) for size in leaf.shape), default=0)
    for held in (np.shape(constant) for constant in constants(traced)):
        if held not in public and may_be_records(held, widest):
            given = f"a function that holds an array of shape {list(held)}"
            remedy = "Pass confidential data as records: what a function holds is neither clipped nor noised."
            fail(name, given, f"at most {MOST_HELD} numbers", f"{remedy} If it is public, pass it as public_arrays=.")
    return shape


def may_be_records(shape: tuple[int, ...], widest: int) -> bool:
    """Whether an array is too large to be taken for public: longer than parameters and fields, and not small.

    How many records there are does not enter, as an error would tell it.
    """
    return prod(shape) > MOST_HELD and max(shape) > widest


def constants(traced: Any) -> Iterator[Any]:
    """The arrays that a traced program holds, those of programs within it included."""
    yield from traced.consts
    for equation in traced.jaxpr.eqns:
        for inner in equation.params.values():
            if hasattr(inner, "consts") and hasattr(inner, "jaxpr"):
                yield from constants(inner)
