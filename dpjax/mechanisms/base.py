"""The contract of a mechanism: a base class of which only `log_density` has to be given.

What else a mechanism can do has a default here: a question that is answered no, or a method that is not implemented.
The posterior is correct without any of it: it makes kernels faster or exact, and lets mistakes be refused before
anything is compiled. An object that does not inherit from `Mechanism` is used for whatever methods it has.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import GetAttrKey, all_leaves, register_pytree_with_keys_class

from dpjax._util.json_names import JsonNamed
from dpjax._util.validation import is_refusal, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import AddedNoise, Tails
from dpjax.mechanisms.possible_sums import PossibleSums, all_whole, none_whole
from dpjax.mechanisms.promises import NO_NOISE, Promise, Promised, ProtectedSums, Unpromised
from dpjax.mechanisms.unknown import unknown_numbers
from dpjax.numerics.next_floats import next_below, where_near

__all__ = [
    "Mechanism",
    "as_leaf",
    "as_mechanism",
    "at_coordinates",
    "convert_mechanisms",
    "draws_latent_normal",
    "is_mechanism",
    "parts_of",
    "scale_of",
    "variance_of",
]

OPTIONAL = frozenset(
    {
        *("sample", "log_density_terms", "noise", "tails", "sums"),
        *("check_value", "promise"),
        *("parts", "integer_noise"),
        *("mechanism", "value_size", "num_categories", "privacy"),
    }
)
"""The optional part of the contract: what is read of an object that does not inherit from `Mechanism`."""

STRUCTURE = ("tree_flatten_with_keys", "tree_unflatten")
"""What a `BareMechanism` answers by itself."""

NOT_INHERITED = ("promise", "_words", "_promise_of", "_local_promise", "noise")
"""A subclass may have another distribution than its base, of which these would then be false."""


class Mechanism(JsonNamed, ABC):
    """How a statistic was privatized: the conditional distribution of the released value given the statistic.

    A subclass is a frozen pytree dataclass with `log_density`, and `sample` if values are to be drawn. It may
    override any other method, and is then used for what it can do. These attributes are read if it has them:

    * ``mechanism``, another mechanism that it wraps, such as the noise under `dpjax.mechanisms.Censored`;
    * ``value_size``, if it releases so many draws given the sum, as `mechanisms.SmoothedHistogram`, and no noisy sum;
    * ``num_categories``, if it releases a category 0, ..., k - 1 of each record and never a sum;
    * ``privacy``, the `dpjax.mechanisms.Privacy` that was stated with the release.

    Hidden counts are summed over all numbers that it leaves. It says which they are: by noise that ``is_unimodal``, by
    whole values with `tails` or ``sums.bounds``, or by ``sums.largest``. Otherwise such counts are imputed.

    Notes
    -----
    `promise`, `noise` and ``json_name`` are not inherited from a subclass by its own subclasses, whose distribution may
    be another. They are inherited only from a base class of methods that are still to be given.

    Examples
    --------
    >>> import dpjax
    >>> noise = dpjax.DiscreteLaplace(2.0)
    >>> noise.noise is not None, noise.integer_noise, noise.sums.known
    (True, True, False)
    """

    by_json_name: ClassVar[dict[str, type[Any]]] = {}
    parameter_axes: ClassVar[dict[str, int] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Take back what a subclass must say of itself."""
        super().__init_subclass__(**options)
        for name in NOT_INHERITED:
            if name not in vars(cls):
                contracts = (vars(base) for base in cls.__mro__ if getattr(base, "__abstractmethods__", ()))
                setattr(cls, name, next(members[name] for members in contracts if name in members))

    @abstractmethod
    def log_density(self, value: Array, statistic: Array) -> Array:
        """The normalised log-density [] of the value [d] given the statistic [d]."""

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value [d] given the statistic [d]."""
        self._refuse("sample")

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d].

        The log-density is their sum, and each is computed elementwise. A `dpjax.Release` asks for many statistics at
        once. Its value is then [d, 1] and the statistics are [d, m]. The mechanism is rebuilt with each parameter [d]
        as a column [d, 1].
        """
        self._refuse("log_density_terms")

    def check_value(self, argument: str, value: Array) -> None:
        """Raise, in the name of this argument, unless the value [d], or values [n, ...], can have been released.

        That integer noise needs whole values need not be checked here.
        """

    def _check_some(self, argument: str, value: np.ndarray, some: np.ndarray) -> None:
        """Raise unless it and what it wraps can release the coordinates of the value [d] that are marked [d]."""
        own = jax.tree.map(lambda leaf: leaf[some] if np.shape(leaf) == some.shape != () else leaf, self)
        for layer in own._layers:
            layer.check_value(argument, value[some])

    def _lets_through(self, number: float) -> bool:
        """Whether neither it nor what it wraps refuses a number [] as a value."""
        try:
            for layer in self._layers:
                layer.check_value("value", jnp.asarray(number, float))
        except ValueError as refusal:
            if not is_refusal(refusal):
                raise
            return False
        return True

    def _check_drawn(self, argument: str, value: Array, dimension: int) -> None:
        """Raise, in the name of this argument, unless the value [k] can be drawn given a statistic [dimension].

        For mechanisms with a `value_size`, whose possible values depend on the statistic that they are given.
        """

    def _largest_below(self, threshold: Any) -> Any:
        """The largest value [] or [d] below a threshold that can be released: by default a whole number, or a float."""
        return np.ceil(threshold) - 1 if self.integer_noise else next_below(threshold, jnp.result_type(float))

    def _withheld(self, value: np.ndarray) -> np.ndarray:
        """Which numbers of a value [..., d] stand for others: those at a bound, and codes in the place of counts."""
        if self.parts is None:
            return np.zeros(np.shape(value), bool)
        places = [(as_mechanism(part), where) for part, where in parts_of(self, np.shape(value)[-1])]
        return np.concatenate([part._withheld(value[..., where]) for part, where in places], axis=-1)

    def _to_atoms(self, value: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The value [d], known up to an error [d], moved to a value of positive probability if that is as near.

        By default to whole numbers under integer noise and if sums are exact, and as the mechanisms inside say.
        """
        if self.parts is not None:
            places = [(as_mechanism(part), where) for part, where in parts_of(self, len(value))]
            return np.concatenate([part._to_atoms(value[where], error[where]) for part, where in places])
        if self.inner is not None:
            return self.inner._to_atoms(value, error)
        return where_near(value, np.round(value), error) if self.integer_noise or self.sums.known else value

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float] | None:
        """The least scale of the noise, and the largest sum on which it is; None if that is not known.

        By default the scale of the `noise` and the largest value. Single precision is to round such sums finely against
        it.

        Parameters
        ----------
        value
            The released value [d].
        n
            The number of records.
        radius
            The largest Euclidean norm of what one record adds to the sums; None if it is not known.
        """
        if self.inner is not None:
            return self.inner._noise_and_sum(value, n, radius)
        scale = scale_of(self)
        return None if scale is None else noise_and_value(scale, value)

    def _normal_covariance(self, size: int) -> np.ndarray | None:
        """The covariance [d, d] of Normal noise on a statistic of this size; None if the noise is not Normal."""
        if self.noise is None or not self.noise.is_normal:
            return None
        return np.diag(np.broadcast_to(np.square(np.asarray(self.noise.scale(), float)), size))

    def _tabulated(self, value: Array) -> "Mechanism":
        """The mechanism with a table of what takes long to compute given the value [d]; by default itself."""
        del value
        return self

    def _words(self) -> str:
        """The distribution of the noise, in words that follow "Noise:"."""
        return f"that of {name_of(self._itself)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """What follows for the privacy of sums that are released by this mechanism.

        Raises
        ------
        Unpromised
            If nothing does.
        """
        del sums
        raise Unpromised(f"What {type(self._itself).__name__} promises is not known.")

    def _local_promise(self, num_coordinates: int) -> Promise:
        """What follows for one record's value, whatever two values of the record are compared.

        Parameters
        ----------
        num_coordinates
            How many numbers are released of one record.

        Raises
        ------
        Unpromised
            If it is not known.
        """
        del num_coordinates
        if self.sums.within:
            raise Unpromised(NO_NOISE)
        raise Unpromised("How far apart two values of a record can be is not part of the release.")

    @property
    def parts(self) -> tuple[tuple["Mechanism", int], ...] | None:
        """Mechanisms side by side, and how many coordinates each releases, in their order; None of a single one."""
        return None

    @property
    def promise(self) -> Promised:
        """What it promises, and in what words its noise is described."""
        return Promised(self._words, self._promise_of, self._local_promise, self._stated_privacy)

    @property
    def noise(self) -> AddedNoise | None:
        """The noise that is added to each coordinate, if the value is the statistic plus such noise; else None."""
        return None

    @property
    def tails(self) -> Tails | None:
        """The probabilities beyond a bound, if they are known; else None."""
        return None

    @property
    def sums(self) -> PossibleSums:
        """What it says of the sums under a value: by default what the mechanisms inside say of all of them."""
        known = self._inside_all(lambda inner: inner.sums.known)
        found = PossibleSums(known=known, tells=known, whole=all_whole if self.integer_noise else none_whole)
        if self.inner is None:
            return found
        return found._replace(categories=self.inner.sums.categories, num_records=self.inner.sums.num_records)

    @property
    def integer_noise(self) -> bool:
        """Whether every draw of the noise is a whole number: then so must be the values and the statistic."""
        return self._inside_all(lambda inner: inner.integer_noise)

    @property
    def _can_sample(self) -> bool:
        """Whether values can be drawn, by all mechanisms inside too."""
        return self._gives("sample") and all(inner._can_sample for inner in self._inside)

    @property
    def _is_elementwise(self) -> bool:
        """Whether there are `log_density_terms`."""
        return self._gives("log_density_terms")

    @property
    def _is_categorical(self) -> bool:
        """Whether it releases a category of each record, and never a sum."""
        return hasattr(self, "num_categories")

    @property
    def _drawn_size(self) -> int | None:
        """How many values are drawn given the statistic, inside its wrappers; None if the statistic is altered."""
        return getattr(self, "value_size", None) if self.inner is None else self.inner._drawn_size

    @property
    def _stated_privacy(self) -> Any:
        """The `dpjax.mechanisms.Privacy` that was stated with the release, or None."""
        return getattr(self, "privacy", None)

    @property
    def inner(self) -> "Mechanism | None":
        """The mechanism that this one wraps, or None."""
        inner = getattr(self, "mechanism", None)
        return None if inner is None else as_mechanism(inner)

    @property
    def _layers(self) -> "Iterator[Mechanism]":
        """The mechanism and those that it wraps, from the outermost to the innermost."""
        yield self
        if self.inner is not None:
            yield from self.inner._layers

    @property
    def _innermost(self) -> "Mechanism":
        """The mechanism inside all wrappers; itself if it wraps none."""
        return self if self.inner is None else self.inner._innermost

    @property
    def _is_opaque(self) -> bool:
        """Whether JAX cannot look into it."""
        return False

    @property
    def _itself(self) -> Any:
        """The object that errors name."""
        return self

    def _gives(self, name: str) -> bool:
        """Whether a method is implemented."""
        return getattr(type(self), name) is not getattr(Mechanism, name)

    @property
    def _inside(self) -> tuple["Mechanism", ...]:
        """The parts, or the one mechanism that is wrapped."""
        if self.parts is not None:
            return tuple(as_mechanism(part) for part, _ in self.parts)
        return () if self.inner is None else (self.inner,)

    def _inside_all(self, question: Callable[["Mechanism"], bool]) -> bool:
        """Whether there are mechanisms inside, of which all answer yes."""
        inside = self._inside
        return bool(inside) and all(map(question, inside))

    def _refuse(self, name: str) -> NoReturn:
        raise NotImplementedError(f"{name_of(self)} has no {name}")


@register_pytree_with_keys_class
class BareMechanism(Mechanism):
    """An object that does not inherit from `Mechanism`, or is no pytree, as one that does and is.

    `OPTIONAL` is read of an object that does not inherit, else the defaults; of another everything. What is no pytree
    belongs to the structure of what holds it.
    """

    def __init__(self, own: Any) -> None:
        self._own = own

    def log_density(self, value: Array, statistic: Array) -> Array:
        """That of the object."""
        return self._own.log_density(value, statistic)

    def __getattribute__(self, name: str) -> Any:
        """The object's attribute if that is a part of the contract; its own names mean something else."""
        own = object.__getattribute__(self, "__dict__").get("_own")
        answers = name not in STRUCTURE and name[0] != "_" if isinstance(own, Mechanism) else name in OPTIONAL
        return getattr(own, name) if answers and has(own, name) else super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the object has."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._own, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BareMechanism) and bool(self._own == other._own)

    def __hash__(self) -> int:
        return hash(self._own)

    def __repr__(self) -> str:
        return repr(self._own)

    @property
    def __name__(self) -> str:
        return name_of(self._own)

    @property
    def _is_opaque(self) -> bool:
        """Whether the object is no pytree."""
        return all_leaves([self._own])

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The object as a child, or as a part of the structure."""
        return ((), self._own) if self._is_opaque else (((GetAttrKey("own"), self._own),), None)

    @classmethod
    def tree_unflatten(cls, structure: Any, children: tuple[Any, ...]) -> "BareMechanism":
        """The inverse of `tree_flatten_with_keys`."""
        return cls(*(children or (structure,)))

    @property
    def _itself(self) -> Any:
        return self._own

    def _gives(self, name: str) -> bool:
        return self._own._gives(name) if isinstance(self._own, Mechanism) else has(self._own, name)


def has(own: Any, name: str) -> bool:
    """Whether an object, and not merely a class, has an attribute."""
    return not isinstance(own, type) and hasattr(own, name)


def is_mechanism(value: Any) -> bool:
    """Whether a value is a mechanism, inheriting or not: an instance with a log-density."""
    return has(value._own if isinstance(value, BareMechanism) else value, "log_density")


def as_mechanism(value: Any) -> Mechanism:
    """The object itself if it is a `Mechanism` and a pytree, else one that answers for what the object has."""
    return value if isinstance(value, Mechanism) and not all_leaves([value]) else BareMechanism(value)


def convert_mechanisms(noun: Any, *names: str) -> None:
    """Convert what is in these fields of a frozen dataclass by `as_mechanism`."""
    for name in names:
        object.__setattr__(noun, name, as_mechanism(getattr(noun, name)))


def scale_of(mechanism: Mechanism) -> Any:
    """The scale [] or [d] of the noise, inside its wrappers; None if that is not known."""
    noise = mechanism._innermost.noise
    return None if noise is None else noise.scale()


def variance_of(mechanism: Mechanism) -> Any:
    """The variance [] or [d] of the noise that is added; None if it is not known."""
    return None if mechanism.noise is None else mechanism.noise.variance()


def draws_latent_normal(mechanism: Mechanism) -> bool:
    """Whether a Normal statistic can be drawn given its value."""
    return mechanism.noise is not None and mechanism.noise.sample_latent_normal is not None


def at_coordinates(mechanism: Mechanism, index: Any) -> Mechanism:
    """The mechanism of the coordinates at an index, with each parameter [d] as [..., 1]; numbers and tables stay."""
    return jax.tree.map(lambda leaf: leaf[index][..., None] if jnp.ndim(leaf) == 1 else leaf, mechanism)


def parts_of(mechanism: Mechanism, d: int) -> tuple[tuple[Mechanism, slice], ...]:
    """The mechanisms that release d coordinates, each with its own: one mechanism with all, unless it has parts."""
    parts = mechanism.parts or ((mechanism, d),)
    ends = accumulate(size for _, size in parts)
    return tuple((part, slice(end - size, end)) for (part, size), end in zip(parts, ends, strict=True))


def noise_and_value(scale: Any, value: np.ndarray) -> tuple[float, float]:
    """The least scale of noise, and the largest value."""
    # NumPy passes `min` on to arrays of JAX, which compile it.
    return float(np.min(np.asarray(scale))), float(np.max(np.abs(value)))


def as_floating(value: Any) -> Array:
    """The value as a floating array: integers take the default float dtype, floats keep theirs."""
    for number in unknown_numbers(value) if isinstance(value, (float, list, tuple)) else ():
        number.refuse()
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))


def as_leaf(value: Any) -> Any:
    """Sequences and arrays, of other libraries too, as floating arrays; numbers and placeholders stay as they are."""
    if isinstance(value, (list, tuple, jax.Array)):
        return as_floating(value)
    return as_floating(np.asarray(value)) if isinstance(value, Sequence) or hasattr(value, "__array__") else value
