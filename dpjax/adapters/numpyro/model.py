"""Complete-data models from NumPyro models of one plate of records."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import BinomialLogits, BinomialProbs, Distribution, Normal

from dpjax._util.dependence import depends_on
from dpjax._util.pytree import static
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import describe_array, fail, is_traced, name_of
from dpjax.adapters.numpyro.argument_checks import check_arguments
from dpjax.adapters.numpyro.arguments import values_of
from dpjax.adapters.numpyro.chains import chain_of, is_chain
from dpjax.adapters.numpyro.densities import ModelDensities, deterministic
from dpjax.adapters.numpyro.inspection import inspect
from dpjax.adapters.numpyro.mixed import Kinds, find_kinds, mixed_records
from dpjax.adapters.numpyro.noncentred import derive_noncentred, find_effects
from dpjax.adapters.numpyro.number import build_number_check, has_prior_of_size
from dpjax.adapters.numpyro.refusals import refuse
from dpjax.adapters.numpyro.shared import build_log_likelihood, is_shared, tally
from dpjax.adapters.numpyro.support import LARGEST_SUMMARY, find_domain
from dpjax.adapters.numpyro.trace import SiteLayout, draw, given, trace_statements, unwrap
from dpjax.base import Array, Key, MixedRecords, Model, NonCentred, Parameters, Records
from dpjax.domain import Domain
from dpjax.models.checks import check_model
from dpjax.models.programs import jit_model
from dpjax.numerics.cells import count_cells

__all__ = ["from_numpyro"]

TOTAL_ERROR = 1e-2
"""Largest error of a total probability, for the largest supports in float32."""


@names_arguments
def from_numpyro(fn: Callable[..., Any], records: str | Sequence[str], n: int | None = None, **arguments: Any) -> Model:
    """The complete-data model of a NumPyro model with one plate of records.

    Sample sites outside the plate become the parameters. Deterministic sites outside it that do not depend on the
    records are reported as derived quantities.

    Parameters
    ----------
    fn
        The NumPyro model. An argument ``n`` is the number of records. Arguments for data are not passed: give them the
        default None; those named like a record field are None in any case.
    records
        The names of the record fields: every sample site inside the plate and, where the statistic needs them, those
        of `arguments` that are covariates [n, ...].
    n
        The number of records for inspecting a model that has an argument ``n`` without a default. Pass it where prior,
        deterministic sites or covariates depend on n: a release of another number is then refused.
    **arguments
        Constant arguments of ``fn``, such as public covariates. If records differ by these, the model is one of that
        many records, and ``dpjax.imwg()`` imputes them.

    Returns
    -------
    Model
        Without an exact update, so that a BlackJAX kernel updates the parameters. The non-centred form is derived from
        the record sites; ``describe()`` shows the form of each. A site without one stays centred.

    Raises
    ------
    TypeError, ValueError
        If the model has no such plate, or scales, masks, subsamples or observes sites. If it has a factor of records, a
        discrete parameter, a record site that is not named, or control flow. If records depend on each other.

    Notes
    -----
    The floats and arrays among the arguments are the numbers of the model: models of one function that differ in them
    alone share compiled programs. All other arguments decide what is compiled, and so do numbers that the function
    reads in Python, as by ``if`` or ``int``, and the variables that it reads from outside.

    Examples
    --------
    >>> import dpjax, numpyro
    >>> from numpyro import distributions as dist
    >>> def program(n, y=None):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    ...     with numpyro.plate("records", n):
    ...         numpyro.sample("y", dist.Normal(mean, 2.0), obs=y)
    >>> dpjax.from_numpyro(program, records=["y"]).exchangeable
    True
    """
    check_given(fn, arguments)
    layout, exchangeable = inspect(fn, records, n, arguments)
    check_arguments(ModelDensities(layout))
    model = NumPyroModel(layout, find_facts(ModelDensities(layout), exchangeable))
    check_model(model)
    check_total(model)
    return model


class ModelFacts(NamedTuple):
    """What is known of a NumPyro model whatever its numbers are, as plain data.

    Attributes
    ----------
    exchangeable
        Whether records are i.i.d. given the parameters.
    num_records
        The only number of records, or None.
    draws_prior
        Whether there are draws from the prior.
    effects
        The names of the parameters whose location or scale depends on others.
    quantities
        The names of the deterministic sites that do not depend on the records.
    support
        The possible records, if there are finitely many.
    kinds
        The fields by kind, if discrete ones stand among continuous ones.
    count_field
        The name of the only field, if that is an integer whose values are not listed.
    has_shared_counts
        Whether the only field is a count whose distribution all records share.
    is_chain
        Whether the records have one field, a chain in time.
    own_field
        The member that has the numbers of the distribution of the only field, such as ``normal_field``; or None.
    """

    exchangeable: bool
    num_records: int | None
    draws_prior: bool
    effects: tuple[str, ...]
    quantities: tuple[str, ...]
    support: Domain | None
    kinds: Kinds | None
    count_field: str | None
    has_shared_counts: bool
    is_chain: bool
    own_field: str | None


def find_facts(densities: ModelDensities, exchangeable: bool, effects: tuple[str, ...] | None = None) -> ModelFacts:
    """The facts of a model that was inspected; `effects` are those of the facts, if they are known."""
    layout, support = densities.layout, find_domain(densities.layout)
    return ModelFacts(
        exchangeable=exchangeable,
        num_records=layout.size if layout.fixed or has_prior_of_size(densities) else None,
        draws_prior=densities.draws_prior,
        effects=find_effects(layout) if effects is None else effects,
        quantities=find_quantities(densities),
        support=support,
        kinds=find_kinds(layout) if support is None else None,
        count_field=find_count_field(layout) if support is None else None,
        has_shared_counts=is_shared(layout),
        is_chain=is_chain(layout),
        own_field=find_own_field(layout),
    )


class NumPyroModel(ModelDensities):
    """A NumPyro model of records, as `from_numpyro` describes it; its arguments are its numbers."""

    facts: ModelFacts = static()

    def __repr__(self) -> str:
        parts = [f"{self.layout.function.__module__}.{name_of(self.layout.function)}", f"records={self.record_fields}"]
        parts += [f"{name}={argument_in_words(value)}" for name, value in self.arguments.items()]
        return f"NumPyroModel({', '.join(parts)})"

    def __reduce__(self) -> Any:
        # The function may be another one where a pickle is read, and is inspected there.
        return partial(from_numpyro, self.layout.function, self.record_fields, **self.arguments), ()

    @property
    def record_fields(self) -> tuple[str, ...]:
        """The names of the record fields."""
        return self.layout.fields + self.layout.known

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the function, and the number of records that it was inspected with."""
        return values_of(self.layout.arguments) | ({"n": self.layout.size} if self.layout.takes_size else {})

    @property
    def exchangeable(self) -> bool:
        """Whether records are i.i.d. given the parameters."""
        return self.facts.exchangeable

    @property
    def num_records(self) -> int | None:
        """The only number of records."""
        return self.facts.num_records

    @property
    def draws_prior(self) -> bool:
        """Whether there are draws from the prior."""
        return self.facts.draws_prior

    @property
    def record_covariates(self) -> tuple[Any, ...] | None:
        """The arguments that have an entry for each record."""
        known = [leaf for leaf in jax.tree.leaves(self.layout.arguments) if self._is_of_records(leaf)]
        return tuple(known) if known or self.exchangeable else None

    @property
    def known_columns(self) -> dict[str, Any]:
        """Those of the arguments that are arrays with an entry for each record."""
        return {name: leaf for name, leaf in self.arguments.items() if self._is_of_records(leaf)}

    def of_records(self, places: Array | np.ndarray) -> Model:
        """The model with the entries of those arguments at some places."""
        if self.exchangeable:
            return self
        arguments = jax.tree.map(
            lambda leaf: leaf[places] if self._is_of_records(leaf) else leaf, self.layout.arguments
        )
        layout = replace(self.layout, arguments=arguments, size=len(places))
        return NumPyroModel(layout, self.facts._replace(num_records=len(places)))

    def _is_of_records(self, leaf: Any) -> bool:
        return hasattr(leaf, "shape") and leaf.ndim > 0 and len(leaf) == self.layout.size

    @property
    def count_field(self) -> str | None:
        """The only field, if that is an integer without a list of its values."""
        return self.facts.count_field

    def has(self, member: str) -> bool:
        """Whether the program has what the member says of it, too."""
        match member:
            case "summarize" | "log_likelihood":
                return self.is_tallied or self.facts.has_shared_counts
            case "chain_field":
                return self.facts.is_chain
            case "normal_field" | "binomial_field":
                return self.facts.own_field == member
            case "mixed":
                return self.facts.kinds is not None
            case "noncentred":
                return self._derived_form is not None
        return super().has(member)

    def derived(self, parameters: Parameters) -> Parameters:
        """The deterministic sites of the parameters."""
        return self.quantities(self.facts.quantities, parameters)

    @property
    def support(self) -> Domain | None:
        """Every possible record."""
        return self.facts.support

    @property
    def mixed(self) -> MixedRecords:
        """The records by scores and levels."""
        assert self.facts.kinds is not None
        return mixed_records(self.layout, self.facts.kinds)

    @cached_property
    def _derived_form(self) -> NonCentred | None:
        return derive_noncentred(self.layout, self.facts.effects, self.facts.has_shared_counts)

    @property
    def noncentred(self) -> NonCentred:
        """The non-centred form of each site."""
        return super().noncentred if self._derived_form is None else self._derived_form

    @cached_property
    def _number_check(self) -> Callable[[Any], None]:
        return build_number_check(ModelDensities(self.layout), self.facts.quantities)

    def check_number(self, n: Any) -> None:
        """Raise if the model is another one with n records, the number of a release."""
        self._number_check(n)

    @property
    def is_tallied(self) -> bool:
        """Whether the likelihood takes each of a few possible records once."""
        domain, is_free = self.domain, self.exchangeable and not self.layout.fixed
        return is_free and domain.is_finite and domain.size <= LARGEST_SUMMARY

    def summarize(self, records: Records) -> Any:
        """How often each record occurs, for records that can be counted."""
        if self.is_tallied:
            domain = self.domain
            return count_cells(domain.cell(records), domain.size)
        return tally(self.layout.fields[0], records) if self.facts.has_shared_counts else super().summarize(records)

    def log_likelihood(self, parameters: Parameters, summary: Any) -> Array:
        """The log-density [] of all records by that summary, which is the count of each possible one [c] if tallied."""
        if self.is_tallied:
            density = self.log_density(parameters, self.domain())
            return jnp.sum(jnp.where(summary > 0, summary * density, 0.0))
        if self.facts.has_shared_counts:
            return build_log_likelihood(self.layout, self.log_density)(parameters, summary)
        return super().log_likelihood(parameters, summary)

    def normal_field(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean and the standard deviation of the only field: [], or [n] if records differ."""
        found = unwrap(self._distribution(parameters))
        return self._of_each(found.loc), self._of_each(found.scale)

    def binomial_field(self, parameters: Parameters) -> tuple[Array, Array]:
        """The number of trials and the probability of the only field: [], or [n] if records differ."""
        found = unwrap(self._distribution(parameters))
        return self._of_each(found.total_count, int), self._of_each(found.probs)

    def chain_field(self, parameters: Parameters) -> Any:
        """The sums along the only field, with one row if all records are alike."""
        chain = chain_of(self._distribution(parameters))
        return jax.tree.map(lambda leaf: leaf[:1], chain) if self.exchangeable else chain

    def _distribution(self, parameters: Parameters) -> Any:
        """The distribution of the only field of all records."""
        found: list[Any] = []

        def choose(name: str, distribution: Any) -> Array:
            if name in self.layout.fields:
                found.append(distribution)
            return given(parameters, draw(jax.random.key(0)))(name, distribution)

        self.layout.run(self.layout.size, choose)
        return found[0]

    def _of_each(self, number: Any, kind: type = float) -> Array:
        """A number of the distribution: [], or [n] if records differ."""
        if self.exchangeable:
            return jnp.ravel(jnp.asarray(number, kind))[0]
        return jnp.broadcast_to(jnp.asarray(number, kind), self.layout.size)


def argument_in_words(value: Any) -> str:
    """An argument as a short text."""
    return describe_array(np.asarray(value)) if isinstance(value, (np.ndarray, jax.Array)) else repr(value)


def check_total(model: NumPyroModel) -> None:
    """Raise if the probabilities of few possible records do not add up to 1 at draws from the prior."""
    if not model.is_tallied or model.num_records is not None:
        return
    totals = np.asarray(total_probabilities.unoptimized(model, jax.random.split(jax.random.key(0), 8)))
    off = totals[np.isfinite(totals) & (np.abs(totals - 1) > TOTAL_ERROR)]
    if off.size:
        refuse(
            f"records whose possible values have the total probability {off[0]:.4g}",
            "probabilities that add up to 1",
            "Normalise the distribution of the records: its log_prob is taken as it is.",
        )


@jit_model
def total_probabilities(model: Model, keys: Key) -> Array:
    """The sum [draw] of the probabilities of all possible records, at draws from the prior."""
    records = model.domain()
    return jax.vmap(lambda key: jnp.sum(jnp.exp(model.log_density(model.sample_prior(key), records))))(keys)


def check_given(fn: Any, arguments: dict[str, Any]) -> None:
    """Raise if a distribution is given instead of a model, or a covariate has NaN."""
    if isinstance(fn, Distribution):
        remedy = "Pass a function that draws from it with numpyro.sample."
        fail("fn", name_of(fn), "a NumPyro model, a function", remedy, error=TypeError)
    for name, value in arguments.items():
        array = None if is_traced(value) or not hasattr(value, "__array__") else np.asarray(value)
        if array is not None and array.dtype.kind == "f" and np.any(np.isnan(array)):
            remedy = "Fill in what is missing, or leave these records out."
            fail(name, f"{describe_array(array)}, with missing numbers", "numbers", remedy)


def find_quantities(densities: ModelDensities) -> tuple[str, ...]:
    """The names of the deterministic sites outside the plate that do not depend on the records."""
    layout = densities.layout
    outside = tuple(
        statement["name"]
        for statement in trace_statements(lambda key: layout.run(layout.size, draw(key)))
        if statement["type"] == "deterministic"
        and layout.plate not in [frame.name for frame in statement["cond_indep_stack"]]
    )

    def value(records: Records, parameters: Parameters, name: str) -> Array:
        statements = layout.run(layout.size, given(records | parameters, draw(jax.random.key(0))))
        return deterministic(statements, (name,))[name]

    key = jax.eval_shape(jax.random.key, 0)
    parameters = jax.eval_shape(densities.sample_prior, key)
    records = jax.eval_shape(
        lambda key, parameters: densities.sample_records(key, parameters, layout.size), key, parameters
    )
    return tuple(name for name in outside if not depends_on(partial(value, name=name), records, parameters))


def find_count_field(layout: SiteLayout) -> str | None:
    """The name of the only field, if it is a single integer: its values are not listed, as this is asked of others."""
    found: dict[str, Any] = {}
    layout.trace_fields(lambda name, distribution, value: found.update({name: (distribution, value.dtype)}))
    if len(found) > 1:
        return None
    ((name, (distribution, dtype)),) = found.items()
    return name if not distribution.event_shape and jnp.issubdtype(dtype, jnp.integer) else None


OWN_FIELDS = {Normal: "normal_field", BinomialProbs: "binomial_field", BinomialLogits: "binomial_field"}
"""The members of a model that have the numbers of such distributions."""


def find_own_field(layout: SiteLayout) -> str | None:
    """The member that has the numbers of the distribution, if the records have one field, a single number of these."""
    statements = trace_statements(lambda key: layout.run(layout.size, draw(key)))
    found = [statement["fn"] for statement in statements if statement.get("name") in layout.fields]
    if layout.known or len(found) != 1 or found[0].event_shape != ():
        return None
    return OWN_FIELDS.get(type(unwrap(found[0])))
