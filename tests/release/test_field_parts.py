"""Fields released in parts: densities and posteriors against tables and closed forms, and bad input by its name."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

import dpjax
from dpjax.release.microdata import Microdata
from tests.data_augmentation.records.test_microdata_posteriors import LABELS, OUTCOMES, PRIOR_SD, SD, Groups

KEEP, WEAK = (dpjax.RandomizedResponse(keep=keep, num_categories=2) for keep in (0.75, 0.6))
EXACT = dpjax.Exact()
N = len(LABELS)
KIND = np.array([0, 1, 2, 3] * 3)
"""How each label was released: by either channel, exactly, or not at all."""
LABEL = [(LABELS, channel, kind == KIND) for kind, channel in enumerate((KEEP, WEAK, EXACT))]
PEOPLE = Microdata({"label": LABEL, "y": (OUTCOMES, EXACT)})


def log_answers() -> np.ndarray:
    """The log-probability [n, 2] of what was released of each label, given each label."""
    is_same = LABELS[:, None] == np.arange(2)
    kept = np.array([0.75, 0.6, 1.0, 0.5])[KIND][:, None]
    with np.errstate(divide="ignore"):
        return np.where(KIND[:, None] == 3, 0.0, np.log(np.where(is_same, kept, 1 - kept)))


def test_each_person_has_the_density_of_their_own_channel():
    found = PEOPLE.log_densities_of_support({"label": jnp.arange(2)})
    np.testing.assert_allclose(found, log_answers(), rtol=1e-6)
    records = {"label": jnp.asarray(LABELS), "y": jnp.asarray(OUTCOMES)}
    np.testing.assert_allclose(PEOPLE.log_densities(records), log_answers()[np.arange(N), LABELS], rtol=1e-6, atol=1e-7)
    held = PEOPLE.hold({"label": 1 - records["label"], "y": records["y"]})
    assert held["label"].tolist() == np.where(KIND == 2, LABELS, 1 - LABELS).tolist()


def test_two_reports_of_one_person_multiply():
    twice = Microdata({"label": [(LABELS, KEEP), (1 - LABELS, WEAK)]})
    found = twice.log_densities_of_support({"label": jnp.arange(2)})
    is_same = LABELS[:, None] == np.arange(2)
    np.testing.assert_allclose(found, np.log(np.where(is_same, 0.75 * 0.4, 0.25 * 0.6)), rtol=1e-5)


def test_parts_have_names_of_categories():
    """Catches names of a part that are lost, in the release or its text, or taken for the mask."""
    names = np.array(["no", "yes"])
    parts = [(names[LABELS], channel, mask, names.tolist()) for _, channel, mask in LABEL]
    named = Microdata({"label": parts, "y": (OUTCOMES, EXACT)})
    np.testing.assert_array_equal(named.observed, PEOPLE.observed)
    for release in (named, dpjax.from_json(named.to_json())):
        assert release.level_names == {"label": ("no", "yes")}


def grid_of_means() -> np.ndarray:
    """The posterior means and deviations of share and mu, by a grid of all three with labels summed out."""
    share = np.linspace(0.005, 0.995, 60)
    mu = np.linspace(-2.5, 3.5, 81)
    of_group = stats.norm.logpdf(OUTCOMES[:, None], mu, SD)  # [n, mu]
    answers = log_answers()
    total = np.zeros((len(share), len(mu), len(mu)))
    for i in range(N):
        zero = np.log1p(-share)[:, None, None] + answers[i, 0] + of_group[i][None, :, None]
        one = np.log(share)[:, None, None] + answers[i, 1] + of_group[i][None, None, :]
        total += np.logaddexp(zero, one)
    prior = stats.norm.logpdf(mu, 0.0, PRIOR_SD)
    weight = special.softmax(total + prior[None, :, None] + prior[None, None, :])
    axes = [(share, (1, 2)), (mu, (0, 2)), (mu, (0, 1))]
    found = []
    for values, others in axes:
        law = weight.sum(axis=others)
        mean = np.sum(law * values)
        found.append((mean, np.sqrt(np.sum(law * values**2) - mean**2)))
    return np.array(found)


def check_groups(release: Any, **options: Any) -> None:
    """Compare means with the grid, within standard errors."""
    posterior = dpjax.sample(jax.random.key(1), Groups(), release, num_samples=2_000, progress=False, **options)
    summary = posterior.summary()
    expected = grid_of_means()
    found = [summary[name]["mean"] for name in ("share", "mu[0]", "mu[1]")]
    errors = [summary[name]["mcse_mean"] for name in ("share", "mu[0]", "mu[1]")]
    z = (np.array(found) - expected[:, 0]) / np.array(errors)
    assert np.max(np.abs(z)) < 4.5, z


@pytest.mark.keys
@pytest.mark.parametrize("imputation", [dpjax.imwg(), dpjax.summed_out()])
def test_labels_of_four_kinds_agree_with_a_grid(imputation):
    check_groups(PEOPLE, imputation=imputation)


@pytest.mark.x64
def test_one_channel_for_all_is_noticed():
    """The planted fault: who answered exactly is taken to have answered at random."""
    with pytest.raises(AssertionError):
        check_groups(Microdata({"label": (LABELS, WEAK), "y": (OUTCOMES, EXACT)}), imputation=dpjax.imwg())


PARTLY = np.array([True, False] * 6)
NOISE = 0.8
VALUES = {"y": [(OUTCOMES, EXACT, PARTLY), (OUTCOMES, dpjax.Gaussian(NOISE), ~PARTLY & (np.arange(N) > 2))]}


@pytest.mark.parametrize("interweave", [False, True])
def test_numbers_that_are_exact_or_noisy_agree_with_a_closed_form(interweave):
    """A Normal mean: each value has the variance of the records, and of its noise where there is noise."""
    seen = PARTLY | (np.arange(N) > 2)
    variance = 0.49 + np.where(PARTLY, 0.0, NOISE**2)
    precision = 1 / 4.0 + np.sum(1 / variance[seen])
    mean = np.sum(OUTCOMES[seen] / variance[seen]) / precision
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=0.49)
    options = {"num_samples": 2_000, "progress": False} | ({} if interweave else {"interweave": False})
    summary = dpjax.sample(jax.random.key(2), model, Microdata(VALUES), **options).summary()
    assert abs(summary["mean"]["mean"] - mean) < 4.5 * summary["mean"]["mcse_mean"]
    assert abs(summary["mean"]["sd"] * precision**0.5 - 1) < 0.1


def test_new_values_keep_their_channels():
    records = {"label": jnp.asarray(LABELS), "y": jnp.asarray(OUTCOMES)}
    new = PEOPLE.sample(jax.random.key(3), records)
    assert new.fields["label"].values[KIND == 2].tolist() == LABELS[KIND == 2].tolist()
    assert jax.tree.structure(new) == jax.tree.structure(PEOPLE)


def test_parts_are_written_read_joined_and_described():
    again = dpjax.from_json(PEOPLE.to_json())
    assert jax.tree.structure(again) == jax.tree.structure(PEOPLE)
    support = {"label": jnp.arange(2)}
    np.testing.assert_array_equal(again.log_densities_of_support(support), PEOPLE.log_densities_of_support(support))
    total = dpjax.Release([5.0], dpjax.Laplace(1.0), dpjax.statistics.total("label", 0.0, 1.0), N)
    both = dpjax.joint(Microdata({"label": LABEL}), total)
    np.testing.assert_array_equal(both.log_densities_of_support(support), again.log_densities_of_support(support))
    words = dpjax.describe(PEOPLE)
    assert "2 fields of n = 12 records." in words
    assert "`label`: none, these are exact, of 3 records." in words
    assert "ε = 1.099" in words  # that of the weaker channel: nobody answered through both
    assert "ε = 1.504" in dpjax.describe(Microdata({"label": [(LABELS, KEEP), (LABELS, WEAK)]}))


def test_a_mask_of_missing_values_is_about_all_parts():
    gaps = np.arange(N) < 4
    release = Microdata({"label": LABEL}, missing={"label": gaps})
    densities = release.log_densities_of_support({"label": jnp.arange(2)})
    np.testing.assert_allclose(densities, np.where(gaps[:, None], 0.0, log_answers()), rtol=1e-6)


BAD = {
    "no channel": ({"label": [(LABELS,)]}, r"fields\['label'\]\[0\]"),
    "no mechanism": ({"label": [(LABELS, LABELS == 1)]}, r"fields\['label'\]\[0\]"),
    "a mask of numbers": ({"label": [(LABELS, KEEP, LABELS)]}, r"mask of fields\['label'\]\[0\]"),
    "a short mask": ({"label": [(LABELS, KEEP, LABELS[:3] == 1)]}, r"mask of fields\['label'\]\[0\]"),
    "two exact parts": ({"label": [(LABELS, EXACT, KIND == 0), (LABELS, EXACT, KIND == 1)]}, r"fields\['label'\]"),
    "two lengths": ({"label": [(LABELS, KEEP), (LABELS[:3], KEEP)]}, r"values of fields\['label( \(2\))?'\]"),
    "no category": ({"label": [(LABELS, EXACT), (LABELS + 5, KEEP)]}, r"values of fields\['label'\]"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_parts_are_refused(kind):
    fields, argument = BAD[kind]
    with pytest.raises((TypeError, ValueError), match=rf"^{argument}: given .*; expected .*\. "):
        Microdata(fields)


COUNTS = np.arange(60)
UNITS = 400
BASE, LIMIT = 3, 6


def rounded_and_withheld() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A covariate and counts, made up, and what is published: rounded at random to multiples of 3, NaN below 6."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1.5, 1.5, UNITS)
    y = rng.poisson(np.exp(1.9 + 0.6 * x))
    down = y - y % BASE
    rounded = down + BASE * (rng.random(UNITS) < y % BASE / BASE)
    return x, y, np.where(rounded < LIMIT, np.nan, rounded)


def modes(x: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Where a and b of Poisson(exp(a + b x)) have their largest likelihood, given log-densities [unit, count]."""

    def minus(at: np.ndarray) -> float:
        of_count = stats.poisson.logpmf(COUNTS, np.exp(at[0] + at[1] * x)[:, None])
        return -float(special.logsumexp(of_count + released, axis=1).sum())

    return np.asarray(optimize.minimize(minus, np.array([2.0, 0.5]), method="Nelder-Mead", tol=1e-8).x)


def test_parts_that_the_value_decides_on_are_refused():
    """Their likelihood was wrong in silence: by sums over all counts, b is off by more than its standard error."""
    x, _, published = rounded_and_withheld()
    gone = np.isnan(published)
    distance = np.abs(published[:, None] - COUNTS)
    rounding = np.maximum(1 - distance / BASE, 0.0)
    below = sum(np.maximum(1 - np.abs(low - COUNTS) / BASE, 0.0) for low in range(0, LIMIT, BASE))
    with np.errstate(divide="ignore"):
        right = np.log(np.where(gone[:, None], below, rounding))
        parts = np.log(np.where(gone[:, None], COUNTS < LIMIT, rounding))
    assert modes(x, right)[1] - modes(x, parts)[1] > 0.02
    released = np.where(gone, 0, published)
    withheld = (np.full(UNITS, -1.0), dpjax.mechanisms.PrimarySuppression(LIMIT), gone)
    with pytest.raises(ValueError, match=r"^fields\['y'\]: given one part of values below 6 that were withheld, and"):
        Microdata({"y": [(released, dpjax.mechanisms.RandomRounding(BASE), ~gone), withheld]})


def test_parts_of_people_may_be_withheld():
    """Refused are neither exact values beside withheld ones, nor a part that has both, nor noisy values below."""
    below_six = dpjax.mechanisms.PrimarySuppression(LIMIT)
    first = np.array([True, True, False, False])
    for values, channel, seen in (
        ([9, 12, 0, 0], EXACT, [-1.0, -1.0, -1.0, -1.0]),
        ([9, 12, 0, 0], dpjax.mechanisms.RandomRounding(BASE), [-1.0, -1.0, -1.0, 8.0]),
        ([9, 3, 0, 0], dpjax.mechanisms.RandomRounding(BASE), [-1.0, -1.0, -1.0, -1.0]),
    ):
        assert Microdata({"y": [(values, channel, first), (seen, below_six, ~first)]}).n == 4
