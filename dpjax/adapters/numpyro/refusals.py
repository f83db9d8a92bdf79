"""Errors of `from_numpyro` for models that are not independent records given parameters."""

from typing import Any, NamedTuple

import jax
import numpy as np
from numpyro.distributions import (
    Beta,
    Delta,
    Dirichlet,
    FoldedDistribution,
    Gamma,
    IntervalCensoredDistribution,
    InverseGamma,
    Kumaraswamy,
    LeftCensoredDistribution,
    MaskedDistribution,
    MixtureGeneral,
    MixtureSameFamily,
    Pareto,
    RightCensoredDistribution,
    TransformedDistribution,
    Weibull,
    constraints,
)
from numpyro.distributions.constraints import is_dependent
from numpyro.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    ExpTransform,
    IdentityTransform,
    IndependentTransform,
    PermuteTransform,
    ReshapeTransform,
)

from dpjax._util.dependence import dependent_results
from dpjax._util.validation import fail, is_traced, name_of, summarize_error
from dpjax.adapters.numpyro.arguments import values_of
from dpjax.adapters.numpyro.mixtures import distributions_of
from dpjax.adapters.numpyro.nested import FLAT
from dpjax.adapters.numpyro.trace import (
    Choose,
    SiteLayout,
    draw,
    factor_terms,
    given,
    is_factor,
    is_improper,
    sample,
    unwrap,
)
from dpjax.base import Array
from dpjax.models.priors import warn_of_underflow

CENSORED = (LeftCensoredDistribution, RightCensoredDistribution, IntervalCensoredDistribution)
REARRANGING = (IdentityTransform, PermuteTransform, ReshapeTransform)
"""Transforms by which no number changes."""

SERIES = "A series in time is one record: its distribution is a dpjax.MarkovChain or a dpjax.NormalChain."

STATEMENTS = {
    "param": ("an optimised parameter (numpyro.param)", "Give it a prior: numpyro.sample."),
    "mutable": ("mutable state", "Write the model as a function of its sample sites alone."),
    "control_flow": (
        "NumPyro's scan or cond",
        f"{SERIES} A random walk of parameters is a GaussianRandomWalk.",
    ),
    "prng_key": ("a random key (numpyro.prng_key)", "Draw everything random at sample sites, without handlers.block."),
}


class Plate(NamedTuple):
    """The name, axis and size of a plate."""

    name: str
    dim: int
    size: int


def refuse(given: str, expected: str, remedy: str) -> None:
    """Raise an error about the NumPyro model."""
    fail("fn", f"a model with {given}", expected, remedy)


def refuse_reading(function: Any, names: list[str], error: Exception) -> None:
    """Raise for a model that reads its data, for instance their length as the size of the plate."""
    data = ", ".join(f"{name}=None" for name in names)
    refuse(
        f"code that reads its data, which are None here ({summarize_error(error)})",
        "the number of records as an argument n, and public covariates as arguments that are passed",
        f"Write def {name_of(function)}(n, {data}) and numpyro.plate(..., n): dpjax passes the n of the release.",
    )


def check_statements(statements: list[dict[str, Any]]) -> None:
    """Raise for unsupported statements, and for sites that are scaled, masked, observed or factors."""
    for statement in statements:
        kind = statement["type"]
        if kind in STATEMENTS:
            what, remedy = STATEMENTS[kind]
            refuse(what, "sample sites, plates and deterministic sites", remedy)
        if kind == "plate" and (statement["args"][1] or statement["args"][0]) != statement["args"][0]:
            size, drawn = statement["args"]
            remedy = "Leave out subsample_size: dpjax imputes all records."
            given = f"{drawn} of {size} of the plate {statement['name']!r} subsampled"
            refuse(given, "every record counted once", remedy)
        if kind == "sample":
            check_site(statement)


def check_site(site: dict[str, Any]) -> None:
    """Raise for a sample site whose density is not that of its distribution."""
    name, distribution = site["name"], site["fn"]
    if is_factor(site):
        if site["cond_indep_stack"] or site["scale"] is not None:
            remedy = "Put it outside of plates, and state the records by distributions."
            refuse(f"a factor, {name!r}, in a plate or scaled", "factors of the parameters", remedy)
        return
    if site["is_substituted"] and not site["is_observed"]:
        refuse(
            f"the site {name!r} given a value by handlers.substitute",
            "sample sites that are drawn",
            "Leave out the handler; fixed values are arguments of fn.",
        )
    if site["scale"] is not None and np.any(np.asarray(site["scale"]) != 1):
        refuse(
            f"the site {name!r} scaled or its plate subsampled",
            "every record counted once",
            "Leave out handlers.scale and subsample_size: dpjax imputes all records.",
        )
    if isinstance(unwrap(distribution), MaskedDistribution):
        refuse(f"the site {name!r} masked", "sites that always count", "Leave out handlers.mask and obs_mask.")
    check_distribution(name, unwrap(distribution))
    if site["is_observed"]:
        remedy = "Leave its data argument out (default None); pass known covariates as arguments, not sites."
        if site["cond_indep_stack"]:
            known = f"dpjax.Microdata({{{name!r}: (values, dpjax.Exact()), ...}})"
            remedy = f"Leave its data argument out, so that obs=None. What is known of {name!r} is released: {known}."
        refuse(f"the site {name!r} observed", "no data: the confidential records are imputed", remedy)


def check_distribution(name: str, distribution: Any) -> None:
    """Raise for distributions whose draws do not follow their density."""
    kind = type(distribution).__name__
    if isinstance(distribution, Delta):
        refuse(
            f"the site {name!r}, a point mass (Delta)",
            "distributions with a density",
            "Use numpyro.deterministic for a value that follows from others, or a constant.",
        )
    if isinstance(distribution, CENSORED):
        refuse(
            f"the site {name!r}, a {kind}, whose density is conditional on who is censored",
            "the distribution of each record's value",
            "State the distribution of the uncensored value, and censor it in the release's statistic.",
        )
    if isinstance(distribution, MixtureGeneral) and any(
        is_dependent(type(part).support) for part in distribution.component_distributions
    ):
        refuse(
            f"the site {name!r}, a {kind} of parts with supports of their own",
            "parts with one fixed support",
            "Add a field for the part that each record belongs to.",
        )
    is_mixture = isinstance(distribution, (MixtureSameFamily, MixtureGeneral))
    for part in map(unwrap, distributions_of(distribution) if is_mixture else [distribution]):
        check_transforms(name, part)


def check_transforms(name: str, distribution: Any) -> None:
    """Raise for a distribution whose transforms are not one-to-one."""
    if is_transformed(distribution) and not one_to_one(distribution):
        refuse(
            f"the site {name!r}, a {type(distribution).__name__} whose transform several values share",
            "a transform that is one-to-one on the values of its base distribution",
            "Use FoldedDistribution for absolute values, or a base whose lower bound is a plain number >= 0.",
        )


def one_to_one(distribution: Any) -> bool:
    """Whether no transform is an absolute value, or of positive numbers and applied to some that may be negative."""
    base = unwrap(distribution.base_dist)
    if is_transformed(base) and not one_to_one(base):
        return False
    with jax.ensure_compile_time_eval():  # bounds that are numbers stay known
        return all(is_invertible(transform, values) for transform, values in list_steps(distribution))


def is_transformed(distribution: Any) -> bool:
    """Whether a density is that of a base distribution and a Jacobian."""
    return isinstance(distribution, TransformedDistribution) and not isinstance(distribution, FoldedDistribution)


def list_steps(distribution: Any) -> list[tuple[Any, Any]]:
    """Each elementary transform, in their order, with the values that it is applied to."""
    values, steps = distribution.base_dist.support, []
    for transform in elementary_parts(ComposeTransform(distribution.transforms)):
        steps.append((transform, values))
        values = values_after(transform, values)
    return steps


def elementary_parts(transform: Any) -> list[Any]:
    """The transforms that one consists of, in their order."""
    if isinstance(transform, IndependentTransform):
        return elementary_parts(transform.base_transform)
    if isinstance(transform, ComposeTransform):
        return [part for each in transform.parts for part in elementary_parts(each)]
    return [transform]


def values_after(transform: Any, values: Any) -> Any:
    """A constraint that transformed values satisfy, the one that tells more where NumPyro's has unknown bounds."""
    if isinstance(transform, REARRANGING):
        return values
    return constraints.positive if isinstance(transform, ExpTransform) or is_scale(transform) else transform.codomain


def is_scale(transform: Any) -> bool:
    """Whether positive numbers are multiplied by one that is not known yet, which NumPyro supposes to be positive."""
    if not isinstance(transform, AffineTransform) or not is_traced(transform.scale):
        return False
    return is_positive(transform.domain) and is_positive(constraints.greater_than(transform.loc))


def is_invertible(transform: Any, values: Any) -> bool:
    """Whether the inverse of an elementary transform gives back all values that satisfy a constraint."""
    if isinstance(transform, CatTransform):
        return all(is_invertible(part, values) for each in transform.transforms for part in elementary_parts(each))
    return not isinstance(transform, AbsTransform) and (is_positive(values) or not is_positive(transform.domain))


def is_positive(values: Any) -> bool:
    """Whether all numbers that satisfy a constraint are known to be at least 0."""
    while isinstance(values, constraints.independent):
        values = values.base_constraint
    if values is constraints.positive_ordered_vector:
        return True
    lower = getattr(values, "lower_bound", -np.inf)
    return not is_traced(lower) and bool(np.all(np.asarray(lower) >= 0))


def check_record_sites(sites: dict[str, Any], fields: tuple[str, ...], takes_size: bool) -> Plate:
    """The one plate of all record sites; of several that a single site stands in, that of axis -1.

    A number of records as an argument, `takes_size`, would be that of one of several plates alone.
    """
    missing = sorted(set(fields) - set(sites))
    if missing or not fields:
        given = f"{missing or list(fields)}, and fn has the sample sites {sorted(sites)}"
        fail("records", given, "names of sample sites inside the plate", "Name the sites that draw the records.")
    for name in fields:
        if is_improper(sites[name]["fn"]):
            kind = type(unwrap(sites[name]["fn"])).__name__
            remedy = "Give it a distribution: improper ones are for parameters."
            refuse(f"the record site {name!r}, a {kind} that cannot be drawn from", "proper distributions", remedy)
    plates = {name: [Plate(*frame) for frame in sites[name]["cond_indep_stack"]] for name in fields}
    for name, stack in plates.items():
        if len(stack) != 1 and not (len(fields) == 1 and not takes_size and is_flat(sites[name], stack)):
            around = [plate.name for plate in stack]
            refuse(
                f"the record site {name!r} inside {f'the plates {around}' if around else 'no plate'}",
                "one plate, that of the records",
                f"Put it in one numpyro.plate({'...'!r}, n), with effects[group] for those of groups; further axes of a"
                f" record belong in .to_event(). {SERIES} Parameters need names of their own.",
            )
    found = {max(stack, key=lambda plate: plate.dim) for stack in plates.values()}
    if len(found) != 1:
        refuse(f"record sites in different plates {sorted(p.name for p in found)}", "one plate", "Use one for all.")
    plate = found.pop()
    if plate.dim != -1:
        refuse(f"the plate {plate.name!r} on axis {plate.dim}", "the axis -1", "Leave out dim.")
    own = {each.name for each in plates[fields[0]]}
    unnamed = sorted(
        name
        for name, site in sites.items()
        if name not in fields and own <= {frame.name for frame in site["cond_indep_stack"]}
    )
    if unnamed:
        given = f"{fields}, without the site {unnamed[0]!r} of the same plate {plate.name!r}"
        remedy = f"Add {unnamed[0]!r}: everything drawn per record is a field."
        fail("records", given, "all sample sites of the plate", remedy)
    return plate


def is_flat(site: dict[str, Any], stack: list[Plate]) -> bool:
    """Whether records in several plates are taken one after another."""
    whole = {plate.dim for plate in stack} == set(range(-len(stack), 0))
    return len(stack) > 1 and whole and not site["fn"].event_shape and type(unwrap(site["fn"])) in FLAT


def check_parameters(sites: dict[str, Any], fields: tuple[str, ...]) -> None:
    """Raise for discrete parameters, and warn of priors whose draws underflow."""
    for name, site in sites.items():
        if name not in fields and site["fn"].support.is_discrete:
            remedy = f"Sum it out, for example by a mixture distribution; only records may be discrete. {SERIES}"
            refuse(f"the discrete parameter {name!r}", "continuous parameters", remedy)
        if name not in fields:
            for shape in small_shapes(unwrap(site["fn"])):
                warn_of_underflow(f"the shape of the site {name!r}", shape)


def small_shapes(distribution: Any) -> tuple[Any, ...]:
    """The shape parameters of a distribution whose draws underflow if these are small."""
    if isinstance(distribution, (Beta, Kumaraswamy)):
        return distribution.concentration1, distribution.concentration0
    if isinstance(distribution, Pareto):
        return (distribution.alpha,)
    return (distribution.concentration,) if isinstance(distribution, (Gamma, InverseGamma, Dirichlet, Weibull)) else ()


def draw_or_refuse(name: str, distribution: Any, values: Choose) -> Array:
    """A draw at a site, or an error if its distribution cannot be sampled."""
    if isinstance(unwrap(distribution), Delta):
        check_distribution(name, unwrap(distribution))
    try:
        return values(name, distribution)
    except (NotImplementedError, ImportError):
        remedy = "Give it a proper prior: starts, predictions and calibration draw from it."
        refuse(
            f"the site {name!r}, a {type(unwrap(distribution)).__name__} that cannot be drawn from",
            "proper distributions",
            remedy,
        )
        raise


def check_factors(layout: SiteLayout, records: Any, parameters: Any) -> None:
    """Raise if a factor depends on the records."""

    def values(records: dict[str, Array], parameters: dict[str, Array]) -> dict[str, Array]:
        statements = layout.run(layout.size, given(records | parameters, draw(jax.random.key(0))))
        return dict(zip(layout.factors, factor_terms(statements), strict=True))

    for name, depends in dependent_results(values, records, parameters).items():
        if depends:
            remedy = "State it as the distribution of a record."
            refuse(f"a factor, {name!r}, that depends on records", "factors of the parameters", remedy)


def check_known(layout: SiteLayout) -> None:
    """Raise for known record fields without one entry for each record."""
    for name in layout.known:
        shape = np.shape(values_of(layout.arguments[name]))
        if shape[:1] != (layout.size,):
            given = f"an argument of shape {list(shape)}"
            fail(f"records[{name!r}]", given, f"a leading axis of {layout.size}", "Pass one entry for each record.")


def check_shapes(layout: SiteLayout) -> None:
    """Raise for record sites without one log-density for each record."""

    def log_densities(key: Array) -> dict[str, Array]:
        terms: dict[str, Array] = {}

        def choose(name: str, distribution: Any) -> Array:
            value = sample(jax.random.fold_in(key, len(terms)), distribution)
            if name in layout.fields:
                terms[name] = distribution.log_prob(value)
            return value

        layout.run(layout.size, choose)
        return terms

    for name, term in jax.eval_shape(log_densities, jax.random.key(0)).items():
        if term.shape != (layout.size,):
            refuse(
                f"a log-density of shape {list(term.shape)} at the record site {name!r}, for {layout.size} records",
                "one value for each record",
                "Keep the plate's axis out of .to_event() and of the event shape: records are independent.",
            )


def check_independence(mixed: Array, density_of_mixed: Array) -> None:
    """Raise if the density of records depends on other records, some of which were exchanged."""
    if not same(mixed, density_of_mixed):
        refuse(
            "records that depend on each other",
            "records independent given the parameters",
            "Let the distribution of a record depend only on parameters, known covariates and its own fields. "
            + SERIES,
        )


def same(one: Any, other: Any) -> bool:
    """Whether two arrays are equal up to rounding."""
    one, other = np.asarray(one), np.asarray(other)
    tolerance = 100 * float(np.finfo(np.result_type(one.dtype, np.float32)).eps)
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))
