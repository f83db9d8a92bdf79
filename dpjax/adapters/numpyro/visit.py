"""One run of a NumPyro model in which dpjax decides every value and how many records there are."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro.primitives import Messenger

from dpjax.base import Array, Key

Choose = Callable[[str, Any], Array]
"""``(name, distribution) -> value`` of a sample site."""


class EnoughError(Exception):
    """Ends a run whose other sites are not needed."""


class Visitor(Messenger):
    """Gives sample sites their values and plates their places, and keeps every statement of the model."""

    def __init__(self, choose: Choose, places: dict[str, Array]) -> None:
        super().__init__()
        self.choose, self.places = choose, places
        self.statements: list[dict[str, Any]] = []

    def process_message(self, msg: dict[str, Any]) -> None:
        """Answer one statement of the model."""
        self.statements.append(msg)
        if msg["type"] in ("control_flow", "prng_key"):
            raise EnoughError  # it needs a key of its own; the statement is refused
        if msg["type"] == "plate":
            size, subsample_size = msg["args"]
            places = self.places.get(msg["name"])
            msg["value"] = jnp.arange(subsample_size or size) if places is None else places
        elif msg["type"] == "sample":
            msg["is_substituted"] = msg["value"] is not None
            shape = msg["kwargs"].get("sample_shape", ())
            if shape:
                msg["fn"] = msg["fn"].expand((*shape, *msg["fn"].batch_shape))
                msg["kwargs"]["sample_shape"] = ()
            msg["value"] = self.choose(msg["name"], msg["fn"])


class Layout(NamedTuple):
    """What a NumPyro model consists of, as dpjax sees it.

    Attributes
    ----------
    function
        The model.
    arguments
        The keyword arguments that never change.
    takes_size
        Whether it takes the number of records as its argument ``n``.
    size
        A number of records that is possible.
    fixed
        Whether it is the only one.
    plate
        The name of the records' plate.
    parameters
        The names of the sample sites outside that plate, in the order of the model.
    fields
        The names of those inside it.
    known
        The names of the record fields that are not drawn, but given among the arguments [n, ...].
    """

    function: Callable[..., Any]
    arguments: dict[str, Any]
    takes_size: bool
    size: int
    fixed: bool
    plate: str
    parameters: tuple[str, ...]
    fields: tuple[str, ...]
    known: tuple[str, ...]

    def run(self, n: int, choose: Choose, places: Array | None = None) -> list[dict[str, Any]]:
        """The statements of the model with n records; `choose` gives every sample site its value.

        The places [n] are what the records' plate tells the model of where each record stands: 0, ..., n - 1.
        """
        places = jnp.arange(n) if places is None else places
        return run(self.function, self.arguments | ({"n": n} if self.takes_size else {}), choose, {self.plate: places})

    def known_fields(self, n: int) -> dict[str, Array]:
        """The first n entries of the record fields that are given."""
        return {name: jnp.asarray(self.arguments[name])[:n] for name in self.known}

    def watch_fields(self, look: Callable[[str, Any, Array], None]) -> None:
        """Call `look` with the name, distribution and a draw of every field, in a run that is traced alone."""

        def statements(key: Key) -> list[dict[str, Any]]:
            draws = draw(key)

            def choose(name: str, law: Any) -> Array:
                value = draws(name, law)
                if name in self.fields:
                    look(name, law, value)
                return value

            return self.run(self.size, choose)

        watch(statements)

    def run_parameters(self, choose: Choose) -> None:
        """Run the model up to its last parameter; records that come before it are arbitrary."""
        missing = set(self.parameters)
        arbitrary = draw(jax.random.key(0))

        def choose_until(name: str, law: Any) -> Array:
            value = choose(name, law) if name in missing else arbitrary(name, law)
            missing.discard(name)
            if not missing:
                raise EnoughError
            return value

        if missing:
            self.run(self.size, choose_until)


def run(
    function: Callable[..., Any], arguments: dict[str, Any], choose: Choose, places: dict[str, Array]
) -> list[dict[str, Any]]:
    """The statements of one run, with plates of the given places where these differ from the model's own."""
    visitor = Visitor(choose, places)
    with suppress(EnoughError), visitor:
        function(**arguments)
    return visitor.statements


def watch(statements_of: Callable[[Key], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What a function of a key returns when it is traced alone."""
    seen: list[dict[str, Any]] = []
    jax.eval_shape(lambda key: seen.extend(statements_of(key)), jax.random.key(0))
    return seen


def sample(key: Key, law: Any) -> Array:
    """NumPyro's own draw from a distribution."""
    return law.sample(key)


def draw(key: Key, sample: Callable[[Key, Any], Array] = sample) -> Choose:
    """Values drawn from the model; each site has a key of its own."""
    names: list[str] = []

    def choose(name: str, law: Any) -> Array:
        names.append(name)
        return sample(jax.random.fold_in(key, len(names)), law)

    return choose


def given(values: dict[str, Array], otherwise: Choose) -> Choose:
    """The given values by name, and at other sites those of another choice."""
    return lambda name, law: values[name] if name in values else otherwise(name, law)


def unwrap(law: Any) -> Any:
    """The distribution within expansions and reinterpreted axes; its parameters still broadcast against values."""
    while type(law).__name__ in ("ExpandedDistribution", "Independent"):
        law = law.base_dist
    return law
