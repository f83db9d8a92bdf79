"""The non-centred form of a NumPyro model: each record site as a function of noise and the sites before it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import biject_to

from dpjax.adapters.numpyro.form import CENTRED, Form, expand_as
from dpjax.adapters.numpyro.forms import form_of
from dpjax.adapters.numpyro.shared import count_distribution_at
from dpjax.adapters.numpyro.trace import SiteLayout, draw, unwrap
from dpjax.base import Array, Coordinates, Key, NonCentred, NormalScores, Parameters, Records
from dpjax.numerics.count_tables import sort_uniforms, sum_over_counts

__all__ = ["derive_noncentred"]

FAMILIES = (dist.Normal, dist.Laplace, dist.Cauchy, dist.Logistic, dist.Gumbel, dist.StudentT, dist.LogNormal)
"""Families with a location and a scale on the unconstrained scale."""


def derive_noncentred(layout: SiteLayout, effects: tuple[str, ...], shared: bool) -> NonCentred | None:
    """The non-centred form, or None if no site has one; with what `find_effects` and `is_shared` have found.

    Noise is a dict of the fields, record axis last. The noise of a centred site is its values, whose density depends on
    the parameters.
    """
    forms = find_forms(layout)
    if all(form.description == CENTRED for form in forms.values()) or not layout.parameters:
        return None
    free = all(form.log_density is None for form in forms.values())
    always = all(form.possible is None for form in forms.values())
    scores = {name: form.scores for name, form in forms.items() if form.scores is not None}
    return NonCentred(
        noise=lambda key, parameters, records: noise_of(layout, key, parameters, records),
        records=lambda parameters, noise: records_at(layout, parameters, noise),
        log_density=None if free else lambda parameters, noise: sum_terms(layout, density_term, parameters, noise),
        scores=join_scores(scores) if len(scores) == len(forms) else None,
        forms=tuple((name, form.description) for name, form in forms.items()),
        coordinates=standardised_coordinates(layout, effects),
        possible=None if always else lambda parameters, noise: sum_terms(layout, missing_term, parameters, noise) == 0,
        sums=partial(sums_at, layout) if shared else None,
    )


def find_forms(layout: SiteLayout) -> dict[str, Form]:
    """The form of each record site; only parts that do not depend on the parameters are used."""
    forms: dict[str, Form] = {}

    def collect(name: str, distribution: Any, value: Array) -> None:
        del value
        forms[name] = form_of(distribution)

    layout.trace_fields(collect)
    return forms


def noise_of(layout: SiteLayout, key: Key, parameters: Parameters, records: Records) -> dict[str, Array]:
    """The noise [..., n] of each field that gives these records; drawn within their cells for discrete fields."""
    noise: dict[str, Array] = {}
    values = parameters | {name: records[name] for name in layout.fields}

    def choose(name: str, distribution: Any) -> Array:
        if name in layout.fields:
            site_key = jax.random.fold_in(key, len(noise))
            noise[name] = jnp.moveaxis(form_of(distribution).noise(site_key, values[name]), 0, -1)
        return values[name]

    layout.run(len(records[layout.fields[0]]), choose)
    return noise


def records_at(layout: SiteLayout, parameters: Parameters, noise: dict[str, Array]) -> Records:
    """The records with this noise."""
    records: Records = {}

    def choose(name: str, distribution: Any) -> Array:
        if name not in layout.fields:
            return parameters[name]
        records[name] = form_of(distribution).value(jnp.moveaxis(noise[name], -1, 0))
        return records[name]

    n = noise[layout.fields[0]].shape[-1]
    layout.run(n, choose)
    return records | layout.known_fields(n)


def sums_at(
    layout: SiteLayout, noise: dict[str, Array]
) -> Callable[[Parameters, Callable[[Records], Array]], tuple[Array, Array]]:
    """The sums of contributions over records with this noise, of one field of counts that share a distribution."""
    (field,) = layout.fields
    ascending = sort_uniforms(noise[field])

    def sum_at(parameters: Parameters, contributions: Callable[[Records], Array]) -> tuple[Array, Array]:
        return sum_over_counts(
            count_distribution_at(layout, parameters), ascending, lambda counts: contributions({field: counts})
        )

    return sum_at


def density_term(form: Form, noise: Array) -> Array | None:
    """The log-density [n] of noise that depends on the parameters; None for other noise."""
    return None if form.log_density is None else form.log_density(noise)


def missing_term(form: Form, noise: Array) -> Array | None:
    """1 for noise that gives no value, else 0 [n]; None if noise always gives one."""
    return None if form.possible is None else 1 - form.possible(noise).astype(int)


def sum_terms(
    layout: SiteLayout, term: Callable[[Form, Array], Array | None], parameters: Parameters, noise: dict[str, Array]
) -> Array:
    """The sum [n] over the fields of a term of their forms and noise, at these parameters."""
    terms: list[Array] = []

    def choose(name: str, distribution: Any) -> Array:
        if name not in layout.fields:
            return parameters[name]
        form, field = form_of(distribution), jnp.moveaxis(noise[name], -1, 0)
        found = term(form, field)
        if found is not None:
            terms.append(found)
        return form.value(field)

    layout.run(noise[layout.fields[0]].shape[-1], choose)
    return sum(terms[1:], start=terms[0])


def join_scores(scores: dict[str, NormalScores]) -> NormalScores:
    """The scores of all fields."""
    return NormalScores(
        scores=lambda noise: {name: scores[name].scores(noise[name]) for name in scores},
        noise=lambda normals: {name: scores[name].noise(normals[name]) for name in scores},
    )


def standardised_coordinates(layout: SiteLayout, names: tuple[str, ...]) -> Coordinates | None:
    """The coordinates in which the sites of these names are standardised; None if there are none."""
    if not names:
        return None
    standardised = Standardised(layout, names)
    return Coordinates(standardised.unconstrain, standardised.constrain, standardised.log_jacobian)


def find_effects(layout: SiteLayout) -> tuple[str, ...]:
    """The sites whose location or scale differs between two draws from the prior."""
    if len(layout.parameters) < 2:
        return ()
    one, other = (jax.device_get(moments_at(layout, jax.random.key(seed))) for seed in (0, 1))
    return tuple(name for name in one if any(map(np.any, map(np.not_equal, one[name], other[name]))))


@jax.jit
def moments_at(layout: SiteLayout, key: Key) -> dict[str, tuple[Array, Array]]:
    """The location and scale of each parameter but the first that has them, at a draw from the prior."""
    found: dict[str, tuple[Array, Array]] = {}
    draws = draw(key)

    def choose(name: str, distribution: Any) -> Array:
        inner = unwrap(distribution)
        if type(inner) in FAMILIES and name != layout.parameters[0]:
            found[name] = inner.loc, inner.scale
        return draws(name, distribution)

    layout.run_parameters(choose)
    return found


class Standardised(NamedTuple):
    """The maps of `Coordinates`, in which the sites of the given names are standardised.

    Attributes
    ----------
    layout
        The sites of the model.
    names
        The names of those that are standardised.
    halfway
        The names of those among them that are divided by the square root of their scale.
    """

    layout: SiteLayout
    names: tuple[str, ...]
    halfway: tuple[str, ...] = ()

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """The parameters in these coordinates."""
        coordinates: Parameters = {}

        def choose(name: str, distribution: Any) -> Array:
            free = biject_to(distribution.support).inv(parameters[name])
            location, scale = self.moments(name, distribution, free)
            coordinates[name] = (free - location) / scale
            return parameters[name]

        self.layout.run_parameters(choose)
        return coordinates

    def constrain(self, coordinates: Parameters) -> Parameters:
        """The parameters at these coordinates."""
        parameters: Parameters = {}

        def choose(name: str, distribution: Any) -> Array:
            location, scale = self.moments(name, distribution, coordinates[name])
            parameters[name] = biject_to(distribution.support)(location + scale * coordinates[name])
            return parameters[name]

        self.layout.run_parameters(choose)
        return parameters

    def log_jacobian(self, coordinates: Parameters) -> Array:
        """The log absolute determinant [] of `constrain`, which is triangular in the order of the sites."""
        terms: list[Array] = []

        def choose(name: str, distribution: Any) -> Array:
            location, scale = self.moments(name, distribution, coordinates[name])
            transform, free = biject_to(distribution.support), location + scale * coordinates[name]
            value = transform(free)
            terms.append(jnp.sum(transform.log_abs_det_jacobian(free, value)) + jnp.sum(jnp.log(scale)))
            return value

        self.layout.run_parameters(choose)
        return sum(terms, start=jnp.zeros((), float))

    def moments(self, name: str, distribution: Any, free: Array) -> tuple[Array, Array]:
        """The location and scale of a site in the shape of its unconstrained value; 0 and 1 for all other sites."""
        if name not in self.names:
            return jnp.zeros_like(free), jnp.ones_like(free)
        inner = unwrap(distribution)
        scale = jnp.sqrt(inner.scale) if name in self.halfway else inner.scale
        return expand_as(inner.loc, free), expand_as(scale, free)
