"""What `dpjax.mixture.sample` refuses, before anything is compiled."""

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.mechanisms.noise import Additive
from dpjax.mixture.base import Component, Theta
from dpjax.mixture.binned import bin_release
from dpjax.mixture.components.beta import GammaShapes
from dpjax.mixture.components.gaussian import NormalInverseGamma
from dpjax.mixture.components.multivariate import NormalInverseWishart
from dpjax.mixture.components.truncated import TruncatedNormalInverseGamma
from dpjax.mixture.samplers.conditional import Problem
from dpjax.mixture.starts import possible_records, record_shape, record_type
from dpjax.models import GammaPrior
from dpjax.models.arguments import is_numeric
from dpjax.release import LocalRelease, Release
from dpjax.release.checks import has_integer_noise, warn_where_coarse
from dpjax.validation import check_array, check_count, check_positive, fail

__all__ = ["KERNELS", "WITH_VALUES", "check_collect", "check_problem", "choose_component", "take_apart"]

KERNELS: dict[str, tuple[type, ...]] = {
    "beta": (GammaShapes,),
    "gaussian": (NormalInverseGamma, NormalInverseWishart, TruncatedNormalInverseGamma),
}
"""The base measures that go with each kernel that has a name."""

COLLECTABLE = ("labels", "records")

WITH_VALUES: Final = "with the values"
"""Stands for the channel where a release brings it."""


def take_apart(values: Any, channel: Any) -> tuple[Any, Any]:
    """The values and how they were released: a channel of each record, a `Release` of all, or None.

    Raises
    ------
    TypeError
        If a release comes with another channel, or values with none.
    """
    released = isinstance(values, (Release, LocalRelease))
    if released != (isinstance(channel, str) and channel == WITH_VALUES):
        given = f"{type(values).__name__} and {type(channel).__name__}" if released else "none"
        expected = "none beside a release" if released else "the mechanism that was applied to each record, or None"
        fail("channel", given, expected, "A release knows its mechanism; None stands for records.", error=TypeError)
    if isinstance(values, Release):
        return values.value, values
    return (values.values, values.channel) if isinstance(values, LocalRelease) else (values, channel)


def choose_component(kernel: Any, base: Any, channel: Any = None) -> Component:
    """The component of a kernel's name and its base measure, or the user's own.

    A base measure that is conjugate behind some channel is told which channel that is.

    Raises
    ------
    TypeError, ValueError
        If the name is unknown, or the base measure does not go with it.
    """
    if not isinstance(kernel, str):
        if base is not None:
            fail("base", type(base).__name__, "None beside a component", "A component has a base measure of its own.")
        return check_component(kernel)
    if kernel not in KERNELS:
        fail("kernel", repr(kernel), f"one of {sorted(KERNELS)}, or a component", "Name the kernel.")
    if not isinstance(base, KERNELS[kernel]):
        expected = " or ".join(known.__name__ for known in KERNELS[kernel])
        remedy = "Pass the base measure of the kernel's parameters; priors have no default."
        given = f"the class {base.__name__}" if isinstance(base, type) else type(base).__name__
        fail("base", given, expected, remedy, error=TypeError)
    return check_component(base.behind(channel) if hasattr(base, "behind") else base)


def check_component(component: Any) -> Component:
    """The component, or an error unless its functions fit each other."""
    if isinstance(component, type) or not isinstance(component, Component):
        name = getattr(component, "__name__", type(component).__name__)
        remedy = "It has sample_prior, sample, log_density, features and update."
        fail("kernel", name, "a dpjax.mixture.Component", remedy, error=TypeError)
    try:
        shapes = jax.eval_shape(lambda: exercise(component))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        remedy = "Its functions must fit each other: see dpjax.mixture.Component."
        fail("kernel", f"one that failed with {type(error).__name__}: {error}", "a working component", remedy)
    density, features, prior, updated = shapes
    if density.shape != () or features.ndim != 1:
        given = f"log_density of shape {list(density.shape)}, features of shape {list(features.shape)}"
        fail("kernel", given, "shapes [] and [k] for one record", "Sum over the coordinates of a record.")
    if jax.tree.map(jnp.shape, prior) != jax.tree.map(jnp.shape, updated):
        fail("kernel", "an update that changes shapes", "parameters as they were", "Return leaves [H, ...].")
    return component


def exercise(component: Component, size: int = 3) -> tuple[Array, Array, Theta, Theta]:
    """Every function of a component once: a log-density, features, and parameters before and after an update."""
    prior_key, record_key, update_key = jax.random.split(jax.random.key(0), 3)
    theta = component.sample_prior(prior_key, size)
    records = component.sample(record_key, theta)
    density = component.log_density(records[0], {name: leaf[0] for name, leaf in theta.items()})
    features = jax.vmap(component.features)(records)
    return density, features[0], theta, component.update(update_key, theta, jnp.ones(size), features)


def check_problem(values: Any, channel: Any, component: Component, concentration: Any) -> Problem:
    """The problem, or an error unless values, channel, component and concentration fit each other.

    Parameters
    ----------
    channel
        As `take_apart` gives it.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    shape = record_shape(component)
    concentration = check_concentration(concentration)
    if isinstance(channel, Release):
        binned = bin_release(channel)
        channel.check_records({binned.histogram.field: jax.ShapeDtypeStruct((1, *shape), jnp.result_type(float))})
        return Problem(channel.value, binned, component, concentration)
    if channel is None or hasattr(component, "behind"):
        return check_known(Problem(read_known(values, shape), None, component, concentration))
    release = check_released(values, channel, component, shape)
    warn_where_coarse(release.values, release.channel, release.n)
    return Problem(release.values, release.channel, component, concentration)


def check_released(values: Any, channel: Any, component: Component, shape: tuple[int, ...]) -> LocalRelease:
    """The values with their channel, or an error unless they can be released of such records."""
    release = LocalRelease(values, channel, "record")
    if has_integer_noise(channel) and jnp.issubdtype(record_type(component), jnp.floating):
        given, expected = f"{type(channel).__name__} on records that are no whole numbers", "noise of a continuous law"
        remedy = "Integer noise would tell them exactly. Use Laplace or Gaussian, or a component of whole numbers."
        fail("channel", given, expected, remedy)
    if isinstance(channel, Additive) and release.values.shape[1:] != shape:
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
        fail("concentration", type(concentration).__name__, "a number or a GammaPrior", remedy, error=TypeError)
    check_positive("concentration", concentration, remedy)
    if np.shape(concentration) != ():
        fail("concentration", f"shape {list(np.shape(concentration))}", "one number", remedy)
    return jnp.asarray(concentration, float)


def read_known(values: Any, shape: tuple[int, ...]) -> Array:
    """Records, or released values of a known law, as numbers [n, *shape], or an error."""
    remedy = "Pass one record a row; without a channel the values are the records."
    if values is None:
        fail("values", "None", f"numbers {['n', *shape]}", remedy, error=TypeError)
    check_array("values", values, lambda array: array.size > 0, "finite numbers", remedy)
    records = jnp.asarray(np.asarray(values), float)
    if records.ndim == 0 or records.shape[1:] != shape:
        fail("values", f"shape {list(records.shape)}", f"shape {['n', *shape]}", remedy)
    return records


def check_known(problem: Problem) -> Problem:
    """The problem, or an error unless the component can draw each of its known values."""
    impossible = np.flatnonzero(~np.asarray(possible_records(problem, jax.random.key(0))))
    if impossible.size:
        given = f"{np.asarray(problem.values)[impossible[0]].tolist()} at place {impossible[0]}"
        given += f" and {impossible.size - 1} more like it" if impossible.size > 1 else ""
        remedy = "Rescale the records, or move those on the border inwards by half a unit of measurement."
        fail("values", given, f"records to which {type(problem.component).__name__} gives a density", remedy)
    return problem


def check_collect(collect: Any) -> tuple[str, ...]:
    """The names of what to keep, or an error."""
    if not isinstance(collect, (str, tuple, list)):
        remedy = "Name what to keep beside the mixture, or pass () for nothing."
        fail("collect", repr(collect), f"names among {list(COLLECTABLE)}", remedy, error=TypeError)
    names = (collect,) if isinstance(collect, str) else tuple(collect)
    if not set(names) <= set(COLLECTABLE):
        fail("collect", list(names), f"names among {list(COLLECTABLE)}", "Name what to keep beside the mixture.")
    return names


def check_options(weights: Any, truncation: Any, offers: Any, problem: Problem) -> None:
    """Raise unless the options of the conditional sampler are usable."""
    if weights not in ("posterior", "stick"):
        fail("weights", repr(weights), "'posterior' or 'stick'", "Name the representation of the weights.")
    if truncation is not None:
        check_count("truncation", truncation, "Pass the number of atoms, at least 2.", least=2)
    if offers is not None:
        remedy = "Pass how many offers each record gets a sweep, or 0 for exact draws."
        check_count("offers", offers, remedy, least=0)
        if offers > 0 and problem.channel is None:
            fail("offers", offers, "0 or None, as no records are imputed", "Leave it out.")
        if offers == 0 and problem.channel is not None and problem.tractable is None:
            fail("offers", 0, "at least 1, as no marginal is known for this channel and kernel", remedy)
