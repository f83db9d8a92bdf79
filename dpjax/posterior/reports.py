"""What a posterior says of itself: how its draws were made, and what is to be warned of."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pickles import is_missing
from dpjax._util.words import quantity
from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.parameters.kernels import HMC
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.records.parts import NUM_PARTS
from dpjax.data_augmentation.refresh import PERIOD, RefreshTuning
from dpjax.diagnostics.summary import Summary
from dpjax.diagnostics.warnings import (
    STARTS,
    name_late,
    name_stuck,
    warn_of_divergences,
    warn_of_nonfinite,
    warn_of_poor_mixing,
    with_runs,
)
from dpjax.models.programs import jit_model
from dpjax.models.recentred import standard_coordinates
from dpjax.models.simulation import free_numbers, parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.weights import PSEUDO, weights_of

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

SANDWICH = "sandwich"
"""The setting that says how intervals of weighted records were corrected."""

APPROXIMATE = "approximate: a Normal distribution of the sum in place of imputed records"

OWN_LIKELIHOOD = "by a likelihood of the parameters in place of imputed records"

DRAW_MORE = "Draw more (num_samples, num_warmup), thin more"

DIVERGENT, FEW_DIVERGENT = "_is_divergent", 0.001
"""The end of the names of reports on divergent trajectories, and the share of them that is no cause for a warning."""

SMALLER_STEPS = (
    'Take smaller steps: parameter_kernel=dpjax.data_augmentation.parameter_kernel("nuts", target_acceptance=0.95).'
)

SAME_SLOPE = 1e-2
"""Difference of slopes, relative to 1 and to themselves, up to which they are the same but for rounding."""

FEW_ACCEPTED = 0.01
"""Share of accepted refreshes below which they are no search for other modes."""

UNSEARCHED = "other modes may have been missed"


def level_names_of(posterior: "Posterior") -> dict[str, tuple[str, ...]]:
    """The names of the levels of the records' fields, as far as the release or the model has them."""
    known = [part for part in (posterior.release, posterior.model) if not is_missing(part)]
    return {field: names for part in known for field, names in part.level_names.items()}


def labels_of(posterior: "Posterior") -> dict[str, tuple[tuple[str, ...], ...]]:
    """The names of the entries of parameters and derived quantities, by those of the levels."""
    return {} if is_missing(posterior.model) else posterior.model.entry_labels(level_names_of(posterior))


@runtime_checkable
class KnowsUnreleased(Protocol):
    """A model of columns, some of which no released number may be about."""

    def unreleased(self, release: PrivateRelease) -> tuple[str, ...]:
        """The names of those."""


def known_model(posterior: "Posterior") -> Any:
    """The model; None if the file or pickle that the posterior came from was without it."""
    return None if is_missing(posterior.model) else posterior.model


def note_of(posterior: "Posterior") -> str:
    """The note below a summary: that it is approximate, what the release remarks, and which columns it lacks."""
    notes = [APPROXIMATE] if posterior.approximate else []
    if is_missing(posterior.release):
        return "; ".join(notes)
    notes += [posterior.release.remark] * bool(posterior.release.remark)
    notes += weights_in_words(posterior)
    model = known_model(posterior)
    if columns := model.unreleased(posterior.release) if isinstance(model, KnowsUnreleased) else ():
        notes.append(f"by the prior alone, as no released table has them: {', '.join(columns)}")
    return "; ".join(notes)


def weights_in_words(posterior: "Posterior") -> list[str]:
    """What is said of draws of weighted records, or corrected ones: what they are, and how wide their intervals."""
    corrected = posterior.settings.get(SANDWICH)
    if weights_of(known_model(posterior), posterior.release) is None:
        return [corrected] if corrected else []
    return [f"{PSEUDO}; {corrected or 'its intervals may be too narrow: see posterior.sandwich()'}"]


def describe_posterior(posterior: "Posterior") -> str:
    """How many draws there are, of what, and the sweep that they were made by."""
    num_chains, num_draws = posterior.info["acceptance_rate"].shape
    head = f"{num_chains} chains of {num_draws} draws of {', '.join(posterior.draws) or 'no parameters'}"
    ended = f"; {posterior.ended}" if posterior.ended else ""
    lines = [f"{head}{', interrupted' if posterior.interrupted else ''}{ended}", describe_sweep(posterior)]
    known = not is_missing(posterior.release)
    return "\n".join([*lines, *(weights_in_words(posterior) if known else [])])


def describe_sweep(posterior: "Posterior") -> str:
    """The sweep, and the refreshes if there are any."""
    model, release, plan = posterior.model, posterior.release, posterior.plan
    if posterior.approximate:
        return APPROXIMATE
    if plan is None:
        return OWN_LIKELIHOOD
    if missing := [part for part in (model, release, plan) if is_missing(part)]:
        return f"{missing[0]}"
    sweep = plan.describe(posterior.problem.is_collapsed)
    refresh = posterior.refresh
    return sweep if refresh is None else f"{sweep}, {describe_refreshes(refresh, posterior.info)}"


def describe_refreshes(refresh: RefreshTuning, info: Mapping[str, np.ndarray]) -> str:
    """How often sweeps and refreshes were made, and how many of these were accepted."""
    sweeps, refreshes = int(refresh.sweeps), int(refresh.refreshes)
    parts = (
        ""
        if refresh.parts == NUM_PARTS
        else f" over {quantity(int(refresh.parts), 'part')} of {NUM_PARTS} of the records"
    )
    made = f"{quantity(sweeps, 'sweep')}{parts} and {refreshes} refresh{'es' * (refreshes != 1)}"
    if not refreshes:
        return f"none made, as none of {refresh.made} was accepted in the warm-up: {UNSEARCHED}"
    rates = f"{made} in {PERIOD} steps"
    num_made = np.sum(info["num_refreshes"])
    if not num_made:
        return f"{rates}, none made yet"
    accepted = np.sum(info["refresh_acceptance_rate"] * info["num_refreshes"]) / num_made
    rare = "" if accepted >= FEW_ACCEPTED else f": {UNSEARCHED}"
    share = f"{accepted:.2g}" if accepted else "none"
    return f"{rates}, {share} of them accepted{rare}"


def warn_of(posterior: "Posterior", table: Summary) -> None:
    """Warn of whatever makes the figures of the whole summary unreliable."""
    info = posterior.info
    if "num_nonfinite" in info:
        warn_of_nonfinite(info["num_nonfinite"], sweeps=posterior.settings.get("thin", 1))
    thin, plan = posterior.settings.get("thin", 1), posterior.plan
    if "num_divergent" in info:
        warn_of_divergences(info["num_divergent"], thin)
    kernel = plan.parameter_kernel if isinstance(plan, SweepPlan) and not plan.sums_out else None
    # Between imputations HMC makes short steps, and where one diverges others move the parameters, too.
    watched = () if isinstance(kernel, HMC) else tuple(name for name in info if name.endswith(DIVERGENT))
    for shares in (info[name] for name in watched):
        warn_of_divergences(
            shares * thin, thin, " ".join([SMALLER_STEPS, *noncentred_advice(posterior)]), FEW_DIVERGENT
        )
    if table.rows:
        late = name_late(posterior.draws, table)
        warn_of_poor_mixing(table, posterior.remedy, stuck_of(posterior), advise_starts(posterior), late)


def stuck_of(posterior: "Posterior") -> list[str]:
    """What never moved in some chain though it could: rows of the summary, and the records."""
    draws = posterior.draws
    free = {} if is_missing(posterior.model) else free_numbers(posterior.model, draws)
    plan, rates = posterior.plan, posterior.info["acceptance_rate"]
    return name_stuck(draws, free, labels=posterior.labels) + (
        name_refused(rates, plan) if isinstance(plan, SweepPlan) else []
    )


def name_refused(rates: np.ndarray, plan: SweepPlan, of: str = "the records") -> list[str]:
    """The chains whose records accepted no proposal, by rates [chain, draw], unless the records move otherwise.

    Counts that do not move in any chain may be the only ones that known totals allow.
    """
    refused = np.all(rates == 0, axis=1)
    pinned = plan.own_latent_data is not None and np.all(refused)
    return [with_runs(of, refused, "chain")] if np.any(refused) and not (plan.interweave or pinned) else []


def advise(posterior: "Posterior") -> str:
    """What may help if chains mix poorly."""
    plan = posterior.plan
    if plan is None:
        other = "use dpjax.sample" if posterior.approximate else "try another parameter_kernel"
        return f"Draw more (num_samples, num_warmup), or {other}."
    if any(map(is_missing, (posterior.model, posterior.release, plan))):
        return f"{DRAW_MORE}, or try another imputation."
    others = ["interweave=True"] * lacks_interweaving(posterior)
    others += ["another parameter_kernel"] if plan.sums_out else ["another imputation", "parameter_kernel"]
    if not posterior.model.has("noncentred") and plan.own_latent_data is None:
        others.append("the model written in NumPyro, which may have a non-centred form as this one has not")
    return " ".join([f"{DRAW_MORE}, or try {' or '.join(others)}.", *noncentred_advice(posterior)])


def advise_starts(posterior: "Posterior") -> str:
    """What may help if chains disagree or never moved; large-sample starts are for imputed records of a sum alone."""
    release, plan = posterior.release, posterior.plan
    if plan is None:
        return ""
    has_sum = not any(map(is_missing, (release, plan))) and not plan.sums_out and not release.fields
    return STARTS.format(starts='initial="large-sample", ' * has_sum)


def noncentred_advice(posterior: "Posterior") -> list[str]:
    """Which parameters have a prior that depends on others and move in no standardised coordinates; nothing if none."""
    if is_missing(posterior.model) or posterior.model.has("update"):
        return []
    return [
        f"The prior of {name} depends on {', '.join(others)}: write it non-centred, as a function of standard normals, "
        "such as steps of scale 1 that are multiplied by their scale."
        for name, others in dependent_priors(posterior.model).items()
    ]


def dependent_priors(model: Model) -> dict[str, list[str]]:
    """Parameters [k] whose prior depends on others, with these, also in standardised coordinates if there are any."""
    shapes = parameter_shapes(model)
    coordinates = jax.eval_shape(standard_coordinates(model).unconstrain, shapes)
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(coordinates)):
        return {}
    names, found = list(shapes), {}
    slopes = jax.device_get(slopes_of_prior.unoptimized(model, jax.random.key(0)))
    for name in names:
        own = slopes[name]
        differ = [not np.allclose(own[0], moved, rtol=SAME_SLOPE, atol=SAME_SLOPE, equal_nan=True) for moved in own[1:]]
        others = [other for other, differs in zip(names, differ, strict=True) if differs and other != name]
        if others and shapes[name].size > 1:
            found[name] = others
    return found


@jit_model
def slopes_of_prior(model: Model, key: Key) -> Parameters:
    """The slopes of the prior along standardised coordinates at a draw, and where one of them is from another draw.

    They are [1 + parameter, ...] for each parameter.
    """
    standard, (here_key, there_key) = standard_coordinates(model), jax.random.split(key)
    here, there = (standard.unconstrain(model.sample_prior(one)) for one in (here_key, there_key))
    places = [here, *(here | {name: there[name]} for name in parameter_shapes(model))]

    def log_prior(coordinates: Parameters) -> Array:
        return model.log_prior(standard.constrain(coordinates)) + standard.log_jacobian(coordinates)

    return jax.lax.map(jax.grad(log_prior), jax.tree.map(lambda *leaves: jnp.stack(leaves), *places))


def lacks_interweaving(posterior: "Posterior") -> bool:
    """Whether interweaving is off though it may help; for records with few values its cost outweighs its gain."""
    plan = posterior.plan
    if plan is None or plan.interweave or posterior.model.domain.is_finite:
        return False
    second_step = posterior.problem.second_step
    return second_step is not None and second_step.by_default()
