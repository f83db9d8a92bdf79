"""Samplers and log-densities of a NumPyro model's parameters and records, each by one run of the model."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.distributions import biject_to

from dpjax._util.validation import fail
from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.forms import draw_parameter, draw_value
from dpjax.adapters.numpyro.intervals import log_density_between
from dpjax.adapters.numpyro.trace import (
    SiteLayout,
    draw,
    factor_terms,
    given,
    is_factor,
    is_improper,
    trace_statements,
)
from dpjax.adapters.numpyro.truncation import log_density
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.runtime.identity import identify


class ModelDensities(Model):
    """The model that a NumPyro program states, with all that it computes."""

    layout: SiteLayout

    def sample_prior(self, key: Key) -> Parameters:
        """A draw of the parameters."""
        parameters: Parameters = {}
        draws = draw(key, draw_parameter)

        def choose(name: str, distribution: Any) -> Array:
            parameters[name] = draws(name, distribution)
            return parameters[name]

        self.layout.run_parameters(choose)
        return parameters

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the parameters."""
        terms: list[Array] = []

        def choose(name: str, distribution: Any) -> Array:
            terms.append(jnp.sum(log_density(distribution, parameters[name])))
            return parameters[name]

        terms += factor_terms(self.layout.run_parameters(choose))
        return sum(terms, start=jnp.zeros((), float))

    @property
    def draws_prior(self) -> bool:
        """Whether there are no factors, and no improper distributions."""
        statements = trace_statements(lambda key: self.layout.run(self.layout.size, draw(key)))
        sites = [one for one in statements if one["type"] == "sample"]
        return not any(is_factor(one) or is_improper(one["fn"]) for one in sites)

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """A draw of records [n] given the parameters; the first n if the model has a fixed number of records."""
        layout = self.layout
        if layout.fixed and n > layout.size:
            fail("n", n, f"at most {layout.size}, the records of the model", "Give the model the covariates of all.")
        records: Records = {}

        def choose(name: str, distribution: Any) -> Array:
            if name in layout.parameters:
                return parameters[name]
            records[name] = draw_value(jax.random.fold_in(key, len(records)), distribution)
            return records[name]

        layout.run(layout.size if layout.fixed else n, choose)
        return {name: field[:n] for name, field in records.items()} | layout.known_fields(n)

    def log_density(self, parameters: Parameters, records: Records, places: Array | None = None) -> Array:
        """The log-density [n] of each record's random fields, at the indices 0, ..., n - 1 or `places`."""
        return self.log_density_between(parameters, records, {}, places)

    def log_density_between(
        self,
        parameters: Parameters,
        records: Records,
        ends: Mapping[str, tuple[Array, Array]],
        places: Array | None = None,
    ) -> Array:
        """The log-density [n] of records of which some fields lie between ends [n], or are one number."""
        terms: list[Array] = []
        values = {name: parameters[name] for name in self.layout.parameters} | {
            name: records[name] for name in self.layout.fields
        }

        def choose(name: str, distribution: Any) -> Array:
            if name in ends:
                terms.append(log_density_between(name, distribution, *ends[name]))
            elif name in self.layout.fields:
                terms.append(log_density(on_floats(distribution), values[name]))
            return values[name]

        self.layout.run(len(records[self.layout.fields[0]]), choose, places)
        return sum(terms[1:], start=terms[0])

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """The parameters as unconstrained arrays."""
        unconstrained: Parameters = {}

        def choose(name: str, distribution: Any) -> Array:
            unconstrained[name] = biject_to(distribution.support).inv(parameters[name])
            return parameters[name]

        self.layout.run_parameters(choose)
        return unconstrained

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """The parameters at unconstrained arrays."""
        parameters: Parameters = {}

        def choose(name: str, distribution: Any) -> Array:
            parameters[name] = biject_to(distribution.support)(unconstrained[name])
            return parameters[name]

        self.layout.run_parameters(choose)
        return parameters

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """The log absolute determinant [] of `constrain`; a support may depend on earlier parameters."""
        terms: list[Array] = []

        def choose(name: str, distribution: Any) -> Array:
            transform = biject_to(distribution.support)
            value = transform(unconstrained[name])
            terms.append(jnp.sum(transform.log_abs_det_jacobian(unconstrained[name], value)))
            return value

        self.layout.run_parameters(choose)
        return sum(terms, start=jnp.zeros((), float))

    def quantities(self, names: tuple[str, ...], parameters: Parameters) -> Parameters:
        """The deterministic sites of these names, which do not depend on the records."""
        if not names:
            return {}
        choose = given(parameters, draw(jax.random.key(0)))
        return deterministic(self.layout.run(self.layout.size, choose), names)


def identify_program(layout: SiteLayout) -> str:
    """A hash of what the model computes at an unknown draw, with the variables that its function reads."""

    def compute(key: Key, layout: SiteLayout) -> Any:
        densities = ModelDensities(layout)
        parameters = densities.sample_prior(key)
        records = densities.sample_records(key, parameters, layout.size)
        statements = layout.run(layout.size, given(records | parameters, draw(key)))
        sites = [one["value"] for one in statements if one["type"] == "deterministic"]
        return parameters, records, sites, densities.log_prior(parameters), densities.log_density(parameters, records)

    return identify("NumPyro model", jax.make_jaxpr(compute)(jax.random.key(0), layout))


def deterministic(statements: list[dict[str, Any]], names: tuple[str, ...]) -> Parameters:
    """The values of the deterministic sites of these names."""
    return {
        statement["name"]: jnp.asarray(statement["value"])
        for statement in statements
        if statement["type"] == "deterministic" and statement["name"] in names
    }
