"""What `from_numpyro` refuses, each with its remedy: whatever is not independent records given parameters."""

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
    Pareto,
    RightCensoredDistribution,
    TransformedDistribution,
    Weibull,
    constraints,
)
from numpyro.distributions.constraints import is_dependent
from numpyro.distributions.distribution import Unit
from numpyro.distributions.transforms import AbsTransform

from dpjax._util.validation import fail
from dpjax.adapters.numpyro.visit import Choose, Layout, unwrap
from dpjax.base import Array
from dpjax.models.priors import warn_of_underflow

CENSORED = (LeftCensoredDistribution, RightCensoredDistribution, IntervalCensoredDistribution)
STATEMENTS = {
    "param": ("an optimised parameter (numpyro.param)", "Give it a prior: numpyro.sample."),
    "mutable": ("mutable state", "Write the model as a function of its sample sites alone."),
    "control_flow": ("NumPyro's scan or cond", "Write the records' law without it: they are independent."),
    "prng_key": ("a random key (numpyro.prng_key)", "Draw everything random at sample sites, without handlers.block."),
}


class Plate(NamedTuple):
    """The name, axis and size of a plate."""

    name: str
    dim: int
    size: int


def refuse(given: str, expected: str, remedy: str) -> None:
    """Raise for something in the NumPyro model."""
    fail("fn", f"a model with {given}", expected, remedy)


def check_statements(statements: list[dict[str, Any]]) -> None:
    """Refuse statements that are no sample site, and sites that are scaled, masked, observed or factors."""
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
    """Refuse a sample site whose density is not that of its distribution."""
    name, law = site["name"], site["fn"]
    if site["is_substituted"] and not site["is_observed"]:
        refuse(
            f"the site {name!r} given a value by handlers.substitute",
            "sample sites that are drawn",
            "Leave out the handler; what is fixed is an argument of fn.",
        )
    if isinstance(unwrap(law), Unit):
        refuse(f"a factor, {name!r}", "records independent given the parameters", "State it as a distribution.")
    if site["scale"] is not None and np.any(np.asarray(site["scale"]) != 1):
        refuse(
            f"the site {name!r} scaled or its plate subsampled",
            "every record counted once",
            "Leave out handlers.scale and subsample_size: dpjax imputes all records.",
        )
    if isinstance(unwrap(law), MaskedDistribution):
        refuse(f"the site {name!r} masked", "sites that always count", "Leave out handlers.mask and obs_mask.")
    check_law(name, unwrap(law))
    if site["is_observed"]:
        refuse(
            f"the site {name!r} observed",
            "no data: the confidential records are imputed",
            "Leave its data argument out (default None); pass known covariates as arguments that are no site.",
        )


def check_law(name: str, law: Any) -> None:
    """Refuse distributions whose draws and density are not of one law."""
    kind = type(law).__name__
    if isinstance(law, Delta):
        refuse(
            f"the site {name!r}, a point mass (Delta)",
            "laws with a density",
            "Use numpyro.deterministic for a value that follows from others, or a constant.",
        )
    if isinstance(law, CENSORED):
        refuse(
            f"the site {name!r}, a {kind}, whose density takes for granted who is censored",
            "a law of what each record holds",
            "State the law of the uncensored value, and censor it in the release's statistic.",
        )
    if isinstance(law, MixtureGeneral) and any(
        is_dependent(type(part).support) for part in law.component_distributions
    ):
        refuse(
            f"the site {name!r}, a {kind} of parts with supports of their own",
            "parts of one support, which no parameter moves",
            "Add a field for the part that each record belongs to.",
        )
    if isinstance(law, TransformedDistribution) and not isinstance(law, FoldedDistribution) and not one_to_one(law):
        refuse(
            f"the site {name!r}, a {kind} whose transform several values share",
            "a transform that is one-to-one on the values of its base distribution",
            "Use FoldedDistribution for absolute values, or a transform of a positive law.",
        )


def one_to_one(law: Any) -> bool:
    """Whether no transform is an absolute value, nor takes real numbers where its domain is smaller."""
    values = law.base_dist.support
    for transform in law.transforms:
        smaller = values is constraints.real and transform.domain in (constraints.positive, constraints.nonnegative)
        if isinstance(transform, AbsTransform) or smaller:
            return False
        values = transform.codomain
    return True


def check_record_sites(sites: dict[str, Any], fields: tuple[str, ...]) -> Plate:
    """The one plate of all record sites."""
    missing = sorted(set(fields) - set(sites))
    if missing or not fields:
        given = f"{missing or list(fields)}, and fn has the sample sites {sorted(sites)}"
        fail("records", given, "names of sample sites inside the plate", "Name the sites that draw the records.")
    plates = {name: [Plate(*frame) for frame in sites[name]["cond_indep_stack"]] for name in fields}
    for name, stack in plates.items():
        if len(stack) != 1:
            around = [plate.name for plate in stack]
            refuse(
                f"the record site {name!r} inside {f'the plates {around}' if around else 'no plate'}",
                "one plate, that of the records",
                f"Put it in one numpyro.plate({'...'!r}, n); further axes of a record belong in .to_event(). Parameters"
                " need names of their own.",
            )
    found = {stack[0] for stack in plates.values()}
    if len(found) != 1:
        refuse(f"record sites in different plates {sorted(p.name for p in found)}", "one plate", "Use one for all.")
    plate = found.pop()
    if plate.dim != -1:
        refuse(f"the plate {plate.name!r} on axis {plate.dim}", "the axis -1", "Leave out dim.")
    unnamed = sorted(
        name
        for name, site in sites.items()
        if name not in fields and plate.name in [frame.name for frame in site["cond_indep_stack"]]
    )
    if unnamed:
        given = f"{fields}, without the site {unnamed[0]!r} of the same plate {plate.name!r}"
        remedy = f"Add {unnamed[0]!r}: what is drawn for each record is a field of it."
        fail("records", given, "all sample sites of the plate", remedy)
    return plate


def check_parameters(sites: dict[str, Any], plate: str) -> None:
    """Refuse parameters that no kernel here can move, and warn of priors beyond the floats."""
    for name, site in sites.items():
        inside = plate in [frame.name for frame in site["cond_indep_stack"]]
        if not inside and site["fn"].support.is_discrete:
            remedy = "Sum it out, for example by a mixture distribution; only records may be discrete."
            refuse(f"the discrete parameter {name!r}", "continuous parameters", remedy)
        if not inside:
            for shape in small_shapes(unwrap(site["fn"])):
                warn_of_underflow(f"the shape of the site {name!r}", shape)


def small_shapes(law: Any) -> tuple[Any, ...]:
    """The shapes of a law that put it beyond the floats where they are small."""
    if isinstance(law, (Beta, Kumaraswamy)):
        return law.concentration1, law.concentration0
    if isinstance(law, Pareto):
        return (law.alpha,)
    return (law.concentration,) if isinstance(law, (Gamma, InverseGamma, Dirichlet, Weibull)) else ()


def draw_or_refuse(name: str, law: Any, values: Choose) -> Array:
    """A draw at a site, or the error of one that cannot be drawn from."""
    if isinstance(unwrap(law), Delta):
        check_law(name, unwrap(law))
    try:
        return values(name, law)
    except (NotImplementedError, ImportError):
        remedy = "Give it a proper prior: starts, predictions and calibration draw from it."
        refuse(f"the site {name!r}, a {type(unwrap(law)).__name__} that cannot be drawn from", "proper laws", remedy)
        raise


def check_known(layout: Layout) -> None:
    """Refuse known record fields that are not one value for each record."""
    for name in layout.known:
        shape = np.shape(layout.arguments[name])
        if shape[:1] != (layout.size,):
            given = f"an argument of shape {list(shape)}"
            fail(f"records[{name!r}]", given, f"a leading axis of {layout.size}", "Pass one entry for each record.")


def check_shapes(layout: Layout) -> None:
    """Refuse record sites without one log-density for each record."""

    def laws_of_records(key: Array) -> dict[str, Array]:
        terms: dict[str, Array] = {}

        def choose(name: str, law: Any) -> Array:
            value = law.sample(jax.random.fold_in(key, len(terms)))
            if name in layout.fields:
                terms[name] = law.log_prob(value)
            return value

        layout.run(layout.size, choose)
        return terms

    for name, term in jax.eval_shape(laws_of_records, jax.random.key(0)).items():
        if term.shape != (layout.size,):
            refuse(
                f"a log-density of shape {list(term.shape)} at the record site {name!r}, for {layout.size} records",
                "one value for each record",
                "Keep the plate's axis out of .to_event() and of the event shape: records are independent.",
            )


def check_independence(mixed: Array, density_of_mixed: Array) -> None:
    """Refuse records whose density depends on other records, which exchanging half of them shows."""
    if not same(mixed, density_of_mixed):
        refuse(
            "records that depend on each other",
            "records independent given the parameters",
            "Let the law of a record depend on parameters, known covariates and its own fields only.",
        )


def same(one: Any, other: Any) -> bool:
    """Whether two arrays agree to rounding."""
    one, other = np.asarray(one), np.asarray(other)
    tolerance = 100 * float(np.finfo(one.dtype).eps)
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))
