"""Runs of a NumPyro model with chosen values of its sites and a chosen number of records."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.distributions import ImproperUniform, biject_to
from numpyro.distributions.distribution import Unit
from numpyro.primitives import Messenger

from dpjax._util.jit import in_full_precision
from dpjax._util.pytree import PyTree, static
from dpjax.adapters.numpyro.arguments import values_of
from dpjax.adapters.numpyro.nested import flatten
from dpjax.base import Array, Key

Choose = Callable[[str, Any], Array]
"""``(name, distribution) -> value`` of a sample site."""


RECORDS = ""
"""In place of a plate's name, records in several plates, whose places go over all of them."""


class EarlyExitError(Exception):
    """Ends a run early, when no further sites are needed."""


class SiteHandler(Messenger):
    """A NumPyro handler that sets the values of sample sites and the indices of plates, and records all statements."""

    def __init__(
        self, choose: Choose, places: dict[str, Callable[[], Array]], flat: dict[str, tuple[int, ...]] | None = None
    ) -> None:
        super().__init__()
        self.choose, self.places, self.flat = choose, places, flat or {}
        self.statements: list[dict[str, Any]] = []

    def process_message(self, msg: dict[str, Any]) -> None:
        """Process one statement of the model."""
        self.statements.append(msg)
        if msg["type"] in ("control_flow", "prng_key"):
            raise EarlyExitError  # it would need a key; the statement is refused later
        if msg["type"] == "plate":
            size, subsample_size = msg["args"]
            places = self.places.get(msg["name"], partial(jnp.arange, subsample_size or size))
            msg["value"] = places()
        elif msg["type"] == "sample" and not is_factor(msg):
            msg["is_substituted"] = msg["value"] is not None
            shape = msg["kwargs"].get("sample_shape", ())
            if shape:
                msg["fn"] = msg["fn"].expand((*shape, *msg["fn"].batch_shape))
                msg["kwargs"]["sample_shape"] = ()
            if msg["name"] in self.flat:
                self.choose_flat(msg, self.flat[msg["name"]])
            else:
                msg["value"] = self.choose(msg["name"], msg["fn"])

    def choose_flat(self, msg: dict[str, Any], shape: tuple[int, ...]) -> None:
        """Set the value of a record site in plates of this shape, from one of records one after another."""
        places = self.places[RECORDS]()
        msg["fn"] = flatten(msg["fn"], shape, places)
        value = self.choose(msg["name"], msg["fn"])
        msg["value"] = value.reshape(shape) if len(places) == prod(shape) else value


class SiteLayout(PyTree):
    """The sites and arguments of a NumPyro model.

    Attributes
    ----------
    arguments
        The constant keyword arguments as data; `Constant` what decides what is compiled.
    function
        The model.
    takes_size
        Whether the model takes the number of records as its argument ``n``.
    size
        A possible number of records.
    fixed
        Whether it is the only possible one.
    plate
        The name of the records' plate.
    parameters
        The names of the sample sites outside that plate, in the order of the model.
    fields
        The names of the sample sites inside it.
    known
        The names of the record fields that are arguments [n, ...] instead of sample sites.
    factors
        The names of the factors, which depend on parameters alone.
    shape
        The sizes of the plates that records stand in, if they are several; else empty.
    program
        A hash of what the model computes, which changes with the variables that its function reads.
    """

    arguments: dict[str, Any]
    function: Callable[..., Any] = static()
    takes_size: bool = static()
    size: int = static()
    fixed: bool = static()
    plate: str = static()
    parameters: tuple[str, ...] = static()
    fields: tuple[str, ...] = static()
    known: tuple[str, ...] = static()
    factors: tuple[str, ...] = static(default=())
    shape: tuple[int, ...] = static(default=())
    program: str = static(default="")

    def run(self, n: int, choose: Choose, places: Array | None = None) -> list[dict[str, Any]]:
        """The statements of the model with n records; `choose` gives every sample site its value.

        The places [n] are the indices that the records' plate returns, by default 0, ..., n - 1.
        """
        indices = partial(jnp.arange, n) if places is None else lambda: places
        arguments = values_of(self.arguments) | ({"n": n} if self.takes_size else {})
        flat = dict.fromkeys(self.fields, self.shape) if self.shape else {}
        return run(self.function, arguments, choose, {RECORDS if flat else self.plate: indices}, flat)

    def known_fields(self, n: int) -> dict[str, Array]:
        """The first n entries of the known record fields."""
        return {name: jnp.asarray(values_of(self.arguments[name]))[:n] for name in self.known}

    def trace_fields(self, collect: Callable[[str, Any, Array], None]) -> None:
        """Call `collect` with the name, distribution and a draw of every field, in an abstract trace.

        The arguments are abstract as well, so that what is found is that of all models of other numbers.
        """

        def statements(key: Key, layout: SiteLayout) -> list[dict[str, Any]]:
            draws = draw(key)

            def choose(name: str, distribution: Any) -> Array:
                value = draws(name, distribution)
                if name in self.fields:
                    collect(name, distribution, value)
                return value

            return layout.run(self.size, choose)

        trace_statements(statements, self)

    def run_parameters(self, choose: Choose) -> list[dict[str, Any]]:
        """The statements up to the last parameter, or of the whole model if it has factors; records are arbitrary."""
        missing = set(self.parameters)
        arbitrary = draw(jax.random.key(0))

        def choose_until(name: str, distribution: Any) -> Array:
            value = choose(name, distribution) if name in missing else arbitrary(name, distribution)
            missing.discard(name)
            if not missing and not self.factors:
                raise EarlyExitError
            return value

        return self.run(self.size, choose_until) if missing or self.factors else []


@in_full_precision
def run(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    choose: Choose,
    places: dict[str, Callable[[], Array]],
    flat: dict[str, tuple[int, ...]] | None = None,
) -> list[dict[str, Any]]:
    """The statements of one run, with the given indices for plates by name, which are made when a plate is met."""
    handler = SiteHandler(choose, places, flat)
    with suppress(EarlyExitError), handler:
        function(**arguments)
    return handler.statements


def trace_statements(statements_of: Callable[..., list[dict[str, Any]]], *others: Any) -> list[dict[str, Any]]:
    """The statements that a function of a key, and of others, returns in an abstract trace."""
    statements: list[dict[str, Any]] = []
    jax.eval_shape(lambda *values: statements.extend(statements_of(*values)), jax.random.key(0), *others)
    return statements


def sample(key: Key, distribution: Any) -> Array:
    """A draw from a distribution by NumPyro's sampler; of an improper one a Normal draw on the unconstrained scale."""
    if not is_improper(distribution):
        return distribution.sample(key)
    transform = biject_to(distribution.support)
    return transform(jax.random.normal(key, transform.inverse_shape(distribution.shape()), float))


def is_improper(distribution: Any) -> bool:
    """Whether a distribution is an improper one, which has no draws."""
    return isinstance(unwrap(distribution), ImproperUniform)


def is_factor(statement: dict[str, Any]) -> bool:
    """Whether a statement is `numpyro.factor`."""
    return statement["type"] == "sample" and isinstance(unwrap(statement["fn"]), Unit)


def factor_terms(statements: list[dict[str, Any]]) -> list[Array]:
    """The logarithms [] of the factors."""
    return [jnp.sum(unwrap(one["fn"]).log_factor) for one in statements if is_factor(one)]


def draw(key: Key, sample: Callable[[Key, Any], Array] = sample) -> Choose:
    """A choice of values drawn from the model, with a key for each site."""
    names: list[str] = []

    def choose(name: str, distribution: Any) -> Array:
        names.append(name)
        return sample(jax.random.fold_in(key, len(names)), distribution)

    return choose


def given(values: dict[str, Array], otherwise: Choose) -> Choose:
    """A choice of the given values by name, and of another choice at other sites."""
    return lambda name, distribution: values[name] if name in values else otherwise(name, distribution)


def unwrap(distribution: Any) -> Any:
    """The distribution within expansions and reinterpreted axes; its parameters still broadcast against values."""
    while type(distribution).__name__ in ("ExpandedDistribution", "Independent"):
        distribution = distribution.base_dist
    return distribution
