"""Prior-predictive importance sampling: a reference for Markov chains, and fast if the noise is large."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_methods, takes_num_draws
from dpjax._util.validation import check_count, check_key, fail
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.problem import augment, draw_number
from dpjax.data_augmentation.summed_out import Likelihood, MarginalLikelihood, SummedOut, sum_out, try_sum_out
from dpjax.data_augmentation.summed_out.impossible import impossible_in_words
from dpjax.data_augmentation.summed_out.likelihood import MOST_LEFT_OUT, in_words, left_out_at
from dpjax.diagnostics.frames import Labels
from dpjax.diagnostics.summary import QUANTILES, Summary, check_quantiles, quantile_name, tabulate
from dpjax.models.checks import check_fit, check_prior_is_drawn
from dpjax.models.programs import jit_model
from dpjax.models.simulation import batch_size, draw_state, parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.microdata import check_drawn_whole
from dpjax.runtime.progress import PREPARING, Progress, ShowProgress

MAX_KHAT = 0.7

DRAWING = "drawing from the prior"

BATCH_NUMBERS = 2**16
"""Numbers of windows or lists that are summed over side by side."""

NUM_LOOKED_AT, NEGLIGIBLE, MOST_ATTEMPTS = 128, 12.0, 4
"""At how many of the heaviest draws it is measured what windows leave out. By how much their logarithms may be below
that of the heaviest. And how often all draws are weighed at most."""


@names_methods
@dataclass(frozen=True, eq=False)
class ImportanceSample:
    """Weighted draws from p(parameters | release).

    Parameters
    ----------
    draws
        Parameters, derived and reported quantities [draw, ...], drawn from the prior.
    log_weights
        Normalised log-weights [draw]: their exponentials sum to 1.
    effective_sample_size
        1 / Σ w².
    pareto_khat
        The shape of the weights' tail; above 0.7 the estimates are unreliable.
    log_marginal_likelihood
        log p(release value), estimated without bias on the natural scale.
    log_marginal_likelihood_error
        Its standard error, by the delta method.
    labels
        The names of the entries of the draws, where levels have names.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> sample = dpjax.importance_sample(jax.random.key(1), model, release, 1_000)
    >>> sample.draws["mean"].shape, sample.pareto_khat < 0.7
    ((1000,), True)
    >>> sample.resample(jax.random.key(2), 10)["mean"].shape
    (10,)
    """

    draws: dict[str, np.ndarray]
    log_weights: np.ndarray
    effective_sample_size: float
    pareto_khat: float
    log_marginal_likelihood: float
    log_marginal_likelihood_error: float
    labels: Labels = field(default_factory=dict, kw_only=True)

    def summary(self, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, sd and quantiles of every parameter, and their standard errors (``se_...``).

        Parameters
        ----------
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.
        """
        weights = np.exp(self.log_weights)
        figures = {name: summarize_weighted(draws, weights, quantiles) for name, draws in self.draws.items()}
        return tabulate(figures, labels=self.labels)

    @takes_num_draws
    def resample(self, key: Key, num_samples: int) -> dict[str, np.ndarray]:
        """Draws [num_samples, ...] of equal weight, taken with replacement in proportion to the weights."""
        check_key("key", key)
        check_count("num_samples", num_samples)
        ends = np.cumsum(np.exp(self.log_weights))
        targets = np.asarray(jax.random.uniform(key, (num_samples,))) * ends[-1]
        chosen = np.minimum(np.searchsorted(ends, targets, side="right"), len(ends) - 1)
        return {name: draws[chosen] for name, draws in self.draws.items()}


@takes_num_draws
def importance_sample(
    key: Key,
    model: Model,
    release: PrivateRelease,
    num_samples: int,
    *,
    likelihood: Likelihood | SummedOut | Callable[[Parameters], Array] | None = None,
    progress: ShowProgress = True,
) -> ImportanceSample:
    """Weighted draws from p(parameters | release): θ from the prior, x from f(· | θ), weight η(release | x).

    The proposal is the prior predictive, which ignores the release: this works for few parameters and strong noise, and
    is then exact up to the standard errors given. Otherwise the weights degenerate, with a warning. If the records
    can be summed out, as by `dpjax.marginal_likelihood`, the weight is p(release | θ), and no records are drawn.

    Parameters
    ----------
    key
        One typed key.
    model
        The model of the records.
    release
        The release.
    num_samples
        Number of draws from the prior; the k-th uses ``fold_in(key, k)``.
    likelihood
        That of the parameters alone, in place of imputed records; see `dpjax.sample`.
    progress
        See `dpjax.sample`. All draws are made by one program, so that no time left is shown.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable, or every weight is zero.

    Warns
    -----
    UserWarning
        If Pareto k̂ is above 0.7, or some draws have a non-finite density.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> weighted = dpjax.importance_sample(jax.random.key(1), model, release, 100)
    >>> weighted.draws["mean"].shape
    (100,)
    """
    check_key("key", key)
    check_count("num_samples", num_samples)
    check_fit(model, release)
    check_prior_is_drawn(model)
    labels = model.entry_labels(release.level_names | model.level_names)
    with Progress(progress) as bar:
        if likelihood is not None:
            problem = augment(model, release, likelihood=likelihood)
            given = problem.model, release, problem.swept_release
            draws, log_weights, _, left_out = weigh_alone(key, *given, num_samples, bar)
            one_chain = {name: leaf[None] for name, leaf in draws.items()}
            # The draws have the numbers below.
            number_key, examine_key = (jax.random.fold_in(key, num_samples + place) for place in range(2))
            own = problem.own_draws(number_key, one_chain)
            draws = {name: leaf[0] for name, leaf in own.items()}
            if np.any(np.isfinite(log_weights)):
                problem.examine(examine_key, {name: leaf[:, heaviest(log_weights)] for name, leaf in own.items()})
        elif (found := try_sum_out(model, release)) is not None:
            draws, log_weights, _, left_out = weigh_alone(key, model, release, found, num_samples, bar)
        else:
            check_drawn_whole(release)
            model, release = draw_number(model, release)
            size, left_out = batch_size(model, release), 0.0
            bar.say(PREPARING)
            drawn = weigh(model, num_samples, size, key, release)
            bar.say(DRAWING)
            draws, log_weights = jax.device_get(drawn)
    broken = ~(log_weights < np.inf)
    if np.any(broken):
        text = f"{np.sum(broken)} of {num_samples} draws have a non-finite density of the release"
        warn_at_the_call(f"{text}; they get weight 0. Check the model's records there.")
    log_weights = np.where(broken, -np.inf, log_weights).astype(float)
    if np.all(log_weights == -np.inf):
        remedy = "Check the units of the value, mechanism and statistic; or use dpjax.sample."
        which = "" if likelihood is not None or found is None else impossible_in_words(model, found)
        fail(
            "release",
            f"a value of zero density in all of {num_samples} draws{which}",
            "positive density in some",
            remedy,
        )
    if left_out > MOST_LEFT_OUT:
        warn_at_the_call(f"{in_words(left_out)} at some draws. Use dpjax.sample(imputation=dpjax.imwg()).")
    return replace(weighted_sample(draws, log_weights), labels=labels)


def weigh_alone(
    key: Key,
    model: Model,
    release: PrivateRelease,
    likelihood: Likelihood,
    num_samples: int,
    bar: Progress,
) -> tuple[dict[str, np.ndarray], np.ndarray, Likelihood, float]:
    """Draws [draw, ...] from the prior, their log-likelihoods [draw], and what sums leave out at the heaviest of them.

    If that is too much, windows of whole numbers are fitted to these draws, and all are weighed again.
    """
    bar.say(PREPARING)
    left_out = 0.0
    for attempt in range(MOST_ATTEMPTS):
        batch = max(1, BATCH_NUMBERS // likelihood.size)
        drawn = weigh_by(model, num_samples, batch, key, likelihood)
        bar.say(DRAWING)
        draws, log_weights = jax.device_get(drawn)
        if not isinstance(likelihood, MarginalLikelihood) or not likelihood.is_approximate:
            break
        if not np.any(np.isfinite(log_weights)):
            break
        heavy = heaviest(log_weights)
        some = {name: jnp.asarray(draws[name][heavy]) for name in parameter_shapes(model)}
        left_out = left_out_at(likelihood, some)
        if left_out <= MOST_LEFT_OUT or attempt == MOST_ATTEMPTS - 1:
            break
        likelihood = sum_out(model, release, some)
    return draws, log_weights, likelihood, left_out


def heaviest(log_weights: np.ndarray) -> np.ndarray:
    """The places of the draws that weigh most, as many for whatever weights, so that programs are the same."""
    heavy = np.argsort(np.nan_to_num(-log_weights, nan=np.inf))[:NUM_LOOKED_AT]
    return np.resize(heavy[log_weights[heavy] > np.max(log_weights[heavy]) - NEGLIGIBLE], NUM_LOOKED_AT)


@partial(jit_model, static_argnames=("num_samples", "batch"))
def weigh_by(model: Model, num_samples: int, batch: int, key: Key, likelihood: Likelihood) -> tuple[Parameters, Array]:
    """Draws [draw, ...] from the prior, with their log-likelihoods [draw]."""
    log_likelihood = likelihood.build()

    def draw(number: Array) -> tuple[Parameters, Array]:
        parameters = model.sample_prior(jax.random.fold_in(key, number))
        return {**parameters, **model.derived(parameters)}, log_likelihood(parameters)

    return jax.lax.map(draw, jnp.arange(num_samples), batch_size=min(batch, num_samples))


@partial(jit_model, static_argnames=("num_samples", "batch"))
def weigh(model: Model, num_samples: int, batch: int, key: Key, release: PrivateRelease) -> tuple[Parameters, Array]:
    """Draws [draw, ...] from the prior, with the log-densities [draw] of the release at records drawn for each."""

    def draw(number: Array) -> tuple[Parameters, Array]:
        parameters, latent = draw_state(jax.random.fold_in(key, number), model, release)
        draw = {**parameters, **model.derived(parameters), **model.reported(latent.records)}
        return draw, latent.log_density

    return jax.lax.map(draw, jnp.arange(num_samples), batch_size=min(batch, num_samples))


def weighted_sample(draws: dict[str, np.ndarray], log_weights: np.ndarray) -> ImportanceSample:
    """The sample with normalised weights; a warning if they are too unequal."""
    size = len(log_weights)
    log_total = scipy.special.logsumexp(log_weights)
    normalised = log_weights - log_total
    effective = float(np.exp(-scipy.special.logsumexp(2 * normalised)))
    khat = pareto_khat(log_weights)
    if khat > MAX_KHAT:
        text = f"Pareto k-hat is {khat:.2f}, above {MAX_KHAT}, and the effective sample size {effective:.0f} of {size}"
        warn_at_the_call(f"{text}: do not trust the estimates. Draw more, or use dpjax.sample.")
    error = float(np.sqrt(max(1 / effective - 1 / size, 0.0)))
    return ImportanceSample(draws, normalised, effective, khat, float(log_total - np.log(size)), error)


def pareto_khat(log_weights: np.ndarray) -> float:
    """The shape of a generalised Pareto distribution fitted to the largest weights (Vehtari et al. 2024, section 3).

    The tail has min(S / 5, 3 √S) of S weights. The shape is infinite if fewer than five exceed its threshold, as with
    one dominant weight, and -inf if all weights of the tail are equal.
    """
    ordered = np.sort(log_weights) - np.max(log_weights)
    size = len(ordered)
    tail = int(np.ceil(min(size / 5, 3 * np.sqrt(size))))
    threshold = max(ordered[max(size - tail - 1, 0)], np.log(np.finfo(float).tiny))
    if threshold == 0:
        return -np.inf
    excess = np.exp(ordered[ordered > threshold]) - np.exp(threshold)
    return fit_pareto_shape(excess) if len(excess) > 4 else np.inf


def fit_pareto_shape(excess: np.ndarray) -> float:
    """The shape k of a generalised Pareto distribution for ordered x > 0, shrunk to 1/2 (Zhang and Stephens 2009).

    With θ = -k / σ the profile likelihood gives k(θ) = mean log(1 - θ x). θ is averaged over a grid of quantiles of a
    weakly informative prior, in proportion to the profile likelihood; the shrinkage has the weight of ten values.
    """
    size = len(excess)
    number = 30 + int(np.sqrt(size))
    quartile = excess[int(size / 4 + 0.5) - 1]
    grid = 1 / excess[-1] + (1 - np.sqrt(number / (np.arange(number) + 0.5))) / (3 * quartile)

    def shape(theta: np.ndarray) -> np.ndarray:
        return np.mean(np.log1p(-theta[:, None] * excess), axis=1)

    shapes = shape(grid)
    # As θ → 0 the ratio -θ / k(θ), which is 1 / σ, tends to 1 / mean: tied weights can put a grid point there.
    inverse_scale = np.divide(-grid, shapes, out=np.full_like(grid, 1 / np.mean(excess)), where=shapes != 0)
    log_profile = size * (np.log(inverse_scale) - shapes - 1)
    weights = np.exp(log_profile - scipy.special.logsumexp(log_profile))
    estimate = shape(np.sum(grid * weights, keepdims=True))[0]
    return float((size * estimate + 10 * 0.5) / (size + 10))


def summarize_weighted(
    draws: np.ndarray, weights: np.ndarray, quantiles: Sequence[float] = QUANTILES
) -> dict[str, np.ndarray]:
    """Weighted summary statistics of one parameter's draws [draw, ...] and their standard errors, each [...]."""
    draws = np.asarray(draws, float)
    mean = np.tensordot(weights, draws, 1)
    variance = np.tensordot(weights, (draws - mean) ** 2, 1)
    sd = np.sqrt(variance)
    figures = {"mean": mean, "sd": sd, "se_mean": np.sqrt(np.tensordot(weights**2, (draws - mean) ** 2, 1))}
    variance_error = np.sqrt(np.tensordot(weights**2, ((draws - mean) ** 2 - variance) ** 2, 1))
    figures["se_sd"] = variance_error / (2 * np.where(sd > 0, sd, np.nan))
    for level in check_quantiles(quantiles):
        name = quantile_name(level)
        figures[name], figures[f"se_{name}"] = weighted_quantile(draws, weights, level)
    return figures


def weighted_quantile(draws: np.ndarray, weights: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The quantile [...] of weighted draws [draw, ...], and its standard error.

    The error is half the distance between the quantiles at `level` plus and minus the standard error of the weighted
    fraction of draws below the quantile.
    """
    at = quantile_function(draws, weights)
    quantile = at(np.full(draws.shape[1:], level))
    share_error = np.sqrt(np.tensordot(weights**2, ((draws <= quantile) - level) ** 2, 1))
    return quantile, (at(level + share_error) - at(level - share_error)) / 2


def quantile_function(draws: np.ndarray, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The map from levels [...] to the quantiles [...] of draws [draw, ...] with weights [draw] that sum to 1."""
    order = np.argsort(draws, axis=0)
    ordered = np.take_along_axis(draws, order, axis=0)
    below = np.cumsum(weights[order], axis=0)

    def at(levels: np.ndarray) -> np.ndarray:
        position = np.minimum(np.sum(below < levels, axis=0, keepdims=True), len(draws) - 1)
        return np.take_along_axis(ordered, position, axis=0)[0]

    return at
