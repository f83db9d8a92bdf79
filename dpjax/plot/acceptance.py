"""The acceptance rate of each record, and its proven lower bound."""

from typing import Any

import numpy as np

from dpjax._util.validation import check_positive_number, fail
from dpjax.coupling.theory import imwg_acceptance_bound, soma_acceptance_bound
from dpjax.data_augmentation.records.forms import FreshProposals
from dpjax.plot.style import INK, POSTERIOR, legend_above, new_axes, tidy
from dpjax.posterior.posterior import Posterior
from dpjax.release import PrivateRelease
from dpjax.release.describe import Unpromised, promise
from dpjax.release.summed import noisy_sum_of


def plot_acceptance(posterior: Posterior, *, epsilon: float | None, axes: Any) -> Any:
    """The axes with the acceptance rate of each record; see `Posterior.plot_acceptance`."""
    rates = check_rates(posterior)
    if epsilon is not None:
        check_positive_number("epsilon", epsilon, "Pass the ε of the release for replacing one record.")
    bound = acceptance_bound(posterior, epsilon if epsilon is not None else epsilon_of(posterior.release))
    axes = new_axes(axes)
    places = np.arange(rates.shape[1])
    axes.vlines(places, rates.min(axis=0), rates.max(axis=0), color=POSTERIOR, alpha=0.35, linewidth=1)
    axes.plot(places, rates.mean(axis=0), ".", color=POSTERIOR, markersize=4, label="each record (line: chains)")
    axes.axhline(np.mean(rates), color=POSTERIOR, linewidth=1.4, label=f"mean {np.mean(rates):.2f}")
    if bound is not None:
        value, text = bound
        axes.axhline(value, color=INK, linestyle="--", linewidth=1.4, label=f"at least {text} = {value:.2g}")
    axes.set(xlabel="record", ylabel="proposals accepted in a sweep", ylim=(0, max(1.0, 1.05 * rates.max())))
    legend_above(axes)
    tidy(axes)
    return axes


def check_rates(posterior: Posterior) -> np.ndarray:
    """The acceptance rates [chain, n], or an error if no records were imputed."""
    rates = np.asarray(posterior.info.get("acceptance_rate_per_record", np.zeros((0, 0))))
    if not rates.size or (posterior.plan is not None and posterior.plan.own_latent_data is not None):
        expected = "the posterior of imputed records, by dpjax.sample"
        fail("posterior", "draws without rates of records", expected, "Counts, summed_out and sample_clt have none.")
    return rates


def acceptance_bound(posterior: Posterior, epsilon: float | None) -> tuple[float, str] | None:
    """The lower bound of the mean acceptance and its formula, by Xiong and Ju (2025), Theorem 12; None if unknown."""
    imputation = None if posterior.plan is None else posterior.plan.imputation
    if epsilon is None or not isinstance(imputation, FreshProposals):
        return None
    tried = imputation.num_weighed(posterior.release.n)
    if not tried:
        return float(imwg_acceptance_bound(epsilon)), f"exp(−{epsilon:.3g})"
    return float(soma_acceptance_bound(epsilon, tried)), f"{tried} / ({tried} + exp({epsilon:.3g}) − 1)"


def epsilon_of(release: PrivateRelease) -> float | None:
    """The largest log ratio of the release's density between records that differ in one; None if not known.

    It follows from the noise and the range of a statistic of dpjax, else from the privacy of the mechanism. For adding
    or removing a record that is doubled, as replacing is both.
    """
    found = derived_epsilon(release)
    if found is not None:
        return found
    if len(release.parts) != 1:
        return None
    stated = release.parts[0].mechanism.promise.stated
    if stated is None or stated.notion not in ("pure", "local") or stated.epsilon is None:
        return None
    return float(stated.epsilon) * (1 if stated.neighbours == "replace-one" else 2)


def derived_epsilon(release: PrivateRelease) -> float | None:
    """The ε of noisy sums when one record is replaced; None if it does not follow."""
    summed = noisy_sum_of(release)
    if summed is None:
        return None
    try:
        return promise(summed, "replace-one").epsilon
    except Unpromised:
        return None
