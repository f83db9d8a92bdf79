"""The checked arguments of `dpjax.mixture.sample` and `dpjax.mixture.gibbs`: errors come before compilation."""

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_array, check_positive, fail, is_traced, name_of
from dpjax.base import Array
from dpjax.mixture.base import Component, OfReleasedValues, Theta
from dpjax.mixture.binned import bin_release
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.run import Collect, StateFields
from dpjax.mixture.samplers import SAMPLERS, Sampler
from dpjax.mixture.starts import possible_records, record_shape, record_type
from dpjax.models import GammaPrior
from dpjax.models.arguments import is_numeric
from dpjax.release import LocalRelease
from dpjax.release.base import is_release
from dpjax.release.checks import warn_where_coarse

__all__ = [
    "WITH_VALUES",
    "check_collect",
    "check_problem",
    "check_sampler",
    "exercise",
    "make_problem",
    "read_release",
]

COLLECTABLE = ("labels", "records")

WITH_VALUES: Final = "with the values"
"""The channel argument that means: take the mechanism of the release."""


def make_problem(values: Any, channel: Any, component: Any, concentration: Any, discount: Any) -> MixtureProblem:
    """The problem given by the user's values, channel, component, concentration and discount.

    A component of released values is adapted to the channel through which they were released.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    values, channel = read_release(values, channel)
    component = check_component(component)
    if isinstance(component, OfReleasedValues):
        component = check_component(component.behind(channel))
    return check_problem(values, channel, component, (check_concentration(concentration), check_discount(discount)))


def check_sampler(sampler: Any) -> Sampler:
    """The sampler, or an error if it is a name, a function that makes one, or something else."""
    if not isinstance(sampler, Sampler):
        name = sampler if isinstance(sampler, str) else getattr(sampler, "__name__", None)
        remedy = f"Use sampler=dpjax.mixture.{name if name in SAMPLERS else 'conditional'}()."
        given = repr(sampler if name is None else name)
        fail("sampler", given, "a sampler such as dpjax.mixture.conditional()", remedy, error=TypeError)
    return sampler


def read_release(values: Any, channel: Any) -> tuple[Any, Any]:
    """The released values, and the mechanism behind each record, the `Release` of all, or None for known records.

    Raises
    ------
    TypeError
        If a release comes with another channel, or values with none.
    """
    released = is_release(values)
    if released != (isinstance(channel, str) and channel == WITH_VALUES):
        given = f"{type(values).__name__} and {name_of(channel)}" if released else "none"
        expected = "none beside a release" if released else "the mechanism that was applied to each record, or None"
        fail("channel", given, expected, "A release knows its mechanism; None stands for records.", error=TypeError)
    if not released:
        return values, channel
    if values.fields and values.local is None:
        remedy = "Use dpjax.sample with a model of these fields; known records have channel=None."
        fail("values", "Microdata", "values of one field, a LocalRelease or a Release", remedy, error=TypeError)
    return values.observed, values.mechanism if values.fields else values


def check_component(component: Any) -> Component:
    """The component, or an error unless its functions fit each other."""
    if isinstance(component, type) or not isinstance(component, Component):
        given = f"the class {component.__name__}" if isinstance(component, type) else type(component).__name__
        remedy = "Pass one such as dpjax.mixture.NormalInverseGamma(...), or your own; priors have no default."
        fail("component", given, "a dpjax.mixture.Component", remedy, error=TypeError)
    try:
        shapes = jax.eval_shape(lambda: exercise(component))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        remedy = "Its functions must fit each other: see dpjax.mixture.Component."
        fail("component", f"one that failed with {name_of(error)}: {error}", "a working component", remedy)
    density, features, prior, updated = shapes
    if density.shape != () or features.ndim != 1:
        given = f"log_density of shape {list(density.shape)}, features of shape {list(features.shape)}"
        fail("component", given, "shapes [] and [k] for one record", "Sum over the coordinates of a record.")
    if jax.tree.map(jnp.shape, prior) != jax.tree.map(jnp.shape, updated):
        fail("component", "an update that changes shapes", "parameters as they were", "Return leaves [H, ...].")
    return component


def exercise(component: Component, size: int = 3) -> tuple[Array, Array, Theta, Theta]:
    """What a component's functions return: a log-density, features, and parameters before and after an update."""
    prior_key, record_key, update_key = jax.random.split(jax.random.key(0), 3)
    theta = component.sample_prior(prior_key, size)
    records = component.sample(record_key, theta)
    density = component.log_density(records[0], {name: leaf[0] for name, leaf in theta.items()})
    features = jax.vmap(component.features)(records)
    return density, features[0], theta, component.update(update_key, theta, jnp.ones(size), features)


def check_problem(values: Any, channel: Any, component: Component, mixing: tuple[Any, Any]) -> MixtureProblem:
    """The problem, or an error unless values, channel and component are compatible.

    Parameters
    ----------
    channel
        As returned by `read_release`.
    mixing
        The concentration and the discount.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    shape = record_shape(component)
    if is_release(channel):
        binned = bin_release(channel.summed)
        channel.check_records({binned.histogram.field: jax.ShapeDtypeStruct((1, *shape), jnp.result_type(float))})
        return MixtureProblem(channel.observed, binned, component, *mixing)
    if channel is None or isinstance(component, OfReleasedValues):
        return check_known(MixtureProblem(read_known(values, shape), None, component, *mixing))
    release = check_released(values, channel, component, shape)
    warn_where_coarse(release.values, release.channel, release.n)
    return MixtureProblem(release.values, release.channel, component, *mixing)


def check_released(values: Any, channel: Any, component: Component, shape: tuple[int, ...]) -> LocalRelease:
    """The values with their channel, or an error unless the channel can release such values of these records."""
    release = LocalRelease(values, channel, "record")
    channel = release.channel
    if release.varies:
        given, remedy = f"{name_of(channel)} with parameters of its own for each record", "Use dpjax.sample."
        fail("channel", given, "the same channel for all records", remedy)
    is_real = jnp.issubdtype(record_type(component), jnp.floating)
    if channel.sums.categories is not None and is_real:
        given, remedy = f"{name_of(channel)} on real records", "Use a component of categories, numbered from 0."
        fail("channel", given, "a channel of real numbers", remedy)
    if channel.integer_noise and is_real:
        given, expected = f"{name_of(channel)} on records that are no whole numbers", "continuous noise"
        remedy = "Integer noise would reveal them exactly. Use Laplace or Gaussian, or a component of whole numbers."
        fail("channel", given, expected, remedy)
    if channel.noise is not None and release.values.shape[1:] != shape:
        remedy = "Pass what was released of one record a row."
        fail("values", f"shape {list(release.values.shape)}", f"shape {['n', *shape]}", remedy)
    release.check_records({"record": jax.ShapeDtypeStruct((1, *shape), jnp.result_type(float))})
    return release


def check_concentration(concentration: Any) -> Array | GammaPrior:
    """The concentration as a number [] or its prior, or an error."""
    remedy = "Pass a number above zero or a dpjax.models.GammaPrior."
    if isinstance(concentration, GammaPrior):
        shapes = np.shape(concentration.shape), np.shape(concentration.rate)
        if shapes != ((), ()):
            fail("concentration", f"a GammaPrior of shapes {shapes}", "a GammaPrior of one number", remedy)
        return concentration
    if not is_numeric(concentration):
        fail("concentration", name_of(concentration), "a number or a GammaPrior", remedy, error=TypeError)
    check_positive("concentration", concentration, remedy)
    if np.shape(concentration) != ():
        fail("concentration", f"shape {list(np.shape(concentration))}", "one number", remedy)
    return jnp.asarray(concentration, float)


def check_discount(discount: Any) -> Array | None:
    """The discount as a number [], None for 0, or an error."""
    expected, remedy = "a number in [0, 1)", "Pass one such as 0.25, or 0 for a Dirichlet process."
    if not is_numeric(discount):
        fail("discount", name_of(discount), expected, remedy, error=TypeError)
    # As a float of fewer digits it may be 1.
    dtype = jnp.result_type(float)
    check_array("discount", discount, lambda array: (array >= 0) & (array.astype(dtype) < 1), expected, remedy)
    if np.shape(discount) != ():
        fail("discount", f"shape {list(np.shape(discount))}", "one number", remedy)
    rounded = jnp.asarray(discount, float)
    return None if not is_traced(rounded) and rounded == 0 else rounded


def read_known(values: Any, shape: tuple[int, ...]) -> Array:
    """Values that the component models directly, as numbers [n, *shape], or an error."""
    remedy = "Pass one record a row; without a channel the values are the records."
    if values is None:
        fail("values", "None", f"numbers {['n', *shape]}", remedy, error=TypeError)
    check_array("values", values, lambda array: array.size > 0, "finite numbers", remedy)
    records = jnp.asarray(np.asarray(values), float)
    if records.ndim == 0 or records.shape[1:] != shape:
        fail("values", f"shape {list(records.shape)}", f"shape {['n', *shape]}", remedy)
    return records


def check_known(problem: MixtureProblem) -> MixtureProblem:
    """The problem, or an error unless each value has positive density under the component."""
    impossible = np.flatnonzero(~np.asarray(possible_records(problem, jax.random.key(0))))
    if impossible.size:
        given = f"{np.asarray(problem.values)[impossible[0]].tolist()} at place {impossible[0]}"
        given += f" and {impossible.size - 1} more like it" if impossible.size > 1 else ""
        remedy = "Rescale the records, or move those on the border inwards by half a unit of measurement."
        fail("values", given, f"records to which {type(problem.component).__name__} gives a density", remedy)
    return problem


def check_collect(collect: Any) -> Collect | None:
    """The function that takes from a state what to keep, None for nothing; an error if neither a function nor names."""
    if collect is None or (callable(collect) and not isinstance(collect, type)):
        return collect
    expected = f"a function of a MixtureState, names among {list(COLLECTABLE)}, or None"
    remedy = "Pass one such as lambda state: state.labels, or name what to keep beside the mixture."
    if not isinstance(collect, (str, tuple, list)):
        fail("collect", repr(collect), expected, remedy, error=TypeError)
    names = (collect,) if isinstance(collect, str) else tuple(collect)
    if not names or not set(names) <= set(COLLECTABLE):
        fail("collect", list(names), expected, remedy)
    return StateFields(names)
