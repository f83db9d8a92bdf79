"""The likelihood with hidden records summed out: against sums in NumPy and SciPy, which share no code with it."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import integrate, special, stats

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.summed_out import likelihood as likelihood_module, try_sum_out, windows
from dpjax.data_augmentation.summed_out.likelihood import error_of_thinning
from dpjax.data_augmentation.summed_out.released_density import WindowEnds
from dpjax.data_augmentation.summed_out.rows import group_records
from dpjax.data_augmentation.summed_out.windows import first_windows, make_windows, thin_windows

EXPOSURE = np.array([2.0, 0.5, 8.0])


RELEASED = [7, -2, 31]


NUMBERS = np.arange(400)


def cases(exposure=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("areas", len(exposure)):
        numpyro.sample("y", dist.Poisson(exposure * rate * jnp.exp(slope)), obs=y)


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return dpjax.from_numpyro(cases, ["y"], exposure=EXPOSURE)


@pytest.fixture(scope="module")
def counts() -> dpjax.LocalRelease:
    return dpjax.LocalRelease(RELEASED, dpjax.DiscreteLaplace(2.0), "y")


def at(rate: float, slope: float = 0.0) -> dict[str, Any]:
    return {"rate": jnp.asarray(rate), "slope": jnp.asarray(slope)}


def enumerated(rate: float, released: Any = RELEASED, scale: float = 2.0) -> np.ndarray:
    """The joint log-probability [n, count] of each count and of what was released of it."""
    of_noise = stats.dlaplace.logpmf(np.asarray(released)[:, None] - NUMBERS, 1 / scale)
    return stats.poisson.logpmf(NUMBERS, EXPOSURE[:, None] * rate) + of_noise


@pytest.mark.parametrize("rate", [0.01, 3.0])
def test_counts_are_summed_over_and_offsets_are_not_forgotten(model, counts, rate):
    likelihood = dpjax.marginal_likelihood(model, counts)
    expected = special.logsumexp(enumerated(rate), axis=1).sum()
    np.testing.assert_allclose(likelihood(at(rate)), expected, rtol=1e-5 if jnp.zeros(()).dtype == np.float32 else 1e-9)


def test_a_value_far_from_the_model_is_right_and_the_bound_says_when_windows_must_grow(counts, model):
    far = dpjax.LocalRelease([100, -2, 31], dpjax.DiscreteLaplace(2.0), "y")
    narrow, near = dpjax.marginal_likelihood(model, far), at(2.5)
    fitted = dpjax.marginal_likelihood(model, far, jax.tree.map(lambda leaf: leaf[None], near))
    expected = special.logsumexp(enumerated(2.5, [100, -2, 31]), axis=1).sum()
    off = abs(float(narrow(near)) - expected)
    assert off > 0.1
    assert float(narrow.left_out(near)) > np.expm1(off)
    np.testing.assert_allclose(fitted(near), expected, rtol=1e-5)
    assert float(fitted.left_out(near)) < 1e-6


def test_a_call_sums_the_records_out_once(model, counts, monkeypatch):
    """Whether they can be, whether they are by default and the likelihood itself are one answer, which is carried."""
    made, make_terms = [], likelihood_module.make_terms
    monkeypatch.setattr(likelihood_module, "make_terms", lambda *given: made.append(1) or make_terms(*given))
    problem = augment(model, counts, allow_sums=True)
    assert problem.planned(refresh=False).swept_release is problem.swept_release
    assert len(made) == 1


def test_windows_that_are_too_small_on_purpose_are_reported(model, counts):
    people = counts.microdata
    known = people.hold(model.sample_records(jax.random.key(0), at(3.0), 3))
    windows, look = first_windows(model, people, "y", known)
    ends = WindowEnds(np.array([3.0, 0.0, 20.0]), np.array([9.0, 5.0, 25.0]))
    few = make_windows(look, ends, np.full(3, 100.0))
    exact, found = enumerated(3.0), np.asarray(windows.left_out(model, at(3.0)))
    assert np.all(found < 1e-6)
    inside = (ends.low[:, None] <= NUMBERS) & (ends.high[:, None] >= NUMBERS)
    left_out = special.logsumexp(np.where(inside, -np.inf, exact), axis=1) - special.logsumexp(
        np.where(inside, exact, -np.inf), axis=1
    )
    assert np.all(np.asarray(few.left_out(model, at(3.0))) >= np.exp(left_out) * (1 - 1e-5))


def test_records_that_agree_each_leave_out_as_much():
    """Catches a bound for rows, in place of the records that they stand for."""

    def visits(n: int, y: Any = None) -> None:
        rate = numpyro.sample("rate", dist.Gamma(2.0, 0.1))
        with numpyro.plate("weeks", n):
            numpyro.sample("y", dist.Poisson(rate), obs=y)

    model, rate = dpjax.from_numpyro(visits, "y"), {"rate": jnp.asarray(2.5)}
    one, many = (
        dpjax.marginal_likelihood(model, dpjax.LocalRelease([100] * n, dpjax.DiscreteLaplace(2.0), "y"))
        for n in (1, 300)
    )
    assert len(many.weights) == 1
    assert float(one.left_out(rate)) > 1e-3
    np.testing.assert_allclose(many.left_out(rate), 300 * float(one.left_out(rate)), rtol=1e-4)


def test_gradients_and_batches_are_those_of_the_sum(model, counts):
    likelihood = dpjax.marginal_likelihood(model, counts)
    step = 1e-3
    slopes = jax.jit(jax.vmap(jax.grad(lambda rate: likelihood(at(rate)))))(jnp.array([2.0, 3.0]))
    for rate, slope in zip((2.0, 3.0), slopes, strict=True):
        ends = [special.logsumexp(enumerated(rate + sign * step), axis=1).sum() for sign in (-1, 1)]
        np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * step), rtol=1e-3)


def test_records_are_drawn_from_their_conditional_distribution(model, counts):
    likelihood = dpjax.marginal_likelihood(model, counts)
    draw = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, at(3.0))["y"]))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(1), 4_000)))
    weights = special.softmax(enumerated(3.0), axis=1)
    mean = weights @ NUMBERS
    error = np.sqrt((weights @ NUMBERS**2 - mean**2) / len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * error)


@pytest.mark.x64
def test_thinned_windows_agree_where_the_noise_is_smooth():
    exposure = np.full(400, 40.0)
    model = dpjax.from_numpyro(cases, ["y"], exposure=exposure)
    release = dpjax.LocalRelease(170 + np.arange(400) % 60, dpjax.DiscreteGaussian(12.0), "y")
    near, draws = at(5.0), jax.tree.map(lambda leaf: leaf[None], at(5.0))
    whole = dpjax.marginal_likelihood(model, release, draws)
    thinned = thin_windows(whole.model, whole.terms, draws)
    assert thinned.log_released.shape[0] * 2 <= whole.terms.log_released.shape[0]
    np.testing.assert_allclose(
        jnp.sum(whole.weights * thinned.build(whole.model)(near)),
        whole(near),
        rtol=1e-6 if jnp.zeros(()).dtype == np.float32 else 1e-10,
    )
    assert float(jnp.sum(thinned.left_out(whole.model, near))) < 1e-5
    rare = replace(
        whole.terms,
        numbers=whole.terms.numbers[::40],
        log_released=whole.terms.log_released[::40] + np.log(40.0),
        stride=40 * whole.terms.stride,
    )
    # Errors are compared up to a constant, and so at two places.
    places = jax.tree.map(lambda one, other: jnp.stack([one, other]), near, at(5.1))
    assert error_of_thinning(replace(whole, terms=rare), whole, places) > 1e-3
    assert error_of_thinning(replace(whole, terms=thinned), whole, draws) < 1e-2


def answers(group=None, y=None):
    with numpyro.plate("groups", 2):
        logit = numpyro.sample("logit", dist.Normal(0.0, 1.0))
    share = jax.nn.sigmoid(logit)
    with numpyro.plate("people", len(group)):
        numpyro.sample("y", dist.Categorical(jnp.stack([1 - share[group], share[group]], axis=-1)), obs=y)


def test_equal_answers_are_one_row_and_draws_are_made_for_each_person():
    rng = np.random.default_rng(0)
    group, y = rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    model = dpjax.from_numpyro(answers, ["y"], group=group)
    release = dpjax.LocalRelease(y, dpjax.RandomizedResponse(keep=0.75, num_categories=2), "y")
    likelihood, share = dpjax.marginal_likelihood(model, release), np.array([0.3, 0.6])
    assert likelihood.weights.shape == (4,)
    probability = 0.25 + share[group] / 2
    expected = np.sum(np.log(np.where(y == 1, probability, 1 - probability)))
    np.testing.assert_allclose(likelihood({"logit": special.logit(share)}), expected, rtol=1e-5)
    drawn = likelihood.sample_records(jax.random.key(1), {"logit": special.logit(share)})["y"]
    of_one = np.where(y == 1, 0.75 * share[group] / probability, 0.25 * share[group] / (1 - probability))
    assert abs(np.sum(np.asarray(drawn) - of_one)) < 5 * np.sqrt(np.sum(of_one * (1 - of_one)))
    # Those of one row are independent of each other.
    assert len(set(np.asarray(drawn)[likelihood.rows == 0].tolist())) == 2


def by_place(y=None):
    with numpyro.plate("places", 80):
        logit = numpyro.sample("logit", dist.Normal(0.0, 1.0))
    shares = jax.nn.sigmoid(logit)
    with numpyro.plate("people", 80):
        numpyro.sample("y", dist.Categorical(jnp.stack([1 - shares, shares], axis=-1)), obs=y)


def test_people_who_differ_by_their_place_are_not_merged():
    model = dpjax.from_numpyro(by_place, ["y"])
    release = dpjax.LocalRelease(np.arange(80) % 2, dpjax.RandomizedResponse(keep=0.75, num_categories=2), "y")
    assert len(group_records(model, release.microdata).weights) == 80


NORMALS = [
    (dpjax.Laplace(1.5), lambda noise: stats.laplace.pdf(noise, scale=1.5)),
    (dpjax.Gaussian(1.5), lambda noise: stats.norm.pdf(noise, scale=1.5)),
]


@pytest.mark.parametrize(("channel", "density"), NORMALS, ids=["laplace", "gaussian"])
def test_a_normal_field_has_a_closed_form(channel, density):
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    release = dpjax.LocalRelease([1.0, 9.0], channel, "y")
    likelihood = dpjax.marginal_likelihood(model, release)

    def integral(value: float) -> float:
        def at_one(y: float) -> float:
            return stats.norm.pdf(y, 0.5, 2.0) * density(value - y)

        return integrate.quad(at_one, -30, 40, points=[value, 0.5], limit=200)[0]

    expected = sum(np.log(integral(value)) for value in (1.0, 9.0))
    np.testing.assert_allclose(likelihood({"mean": jnp.asarray(0.5)}), expected, rtol=1e-5)


HIDDEN = {
    "threshold": (dpjax.mechanisms.Censored(dpjax.Gaussian(1.5), lower=2.0), [2.0, 9.0, 2.0], [(-np.inf, 2.0), 9.0]),
    "limits": (dpjax.mechanisms.Censored(dpjax.Gaussian(1.5), upper=8.0), [1.0, 8.0, 1.0], [1.0, (8.0, np.inf)]),
    "rounded": (dpjax.mechanisms.Rounded(dpjax.Gaussian(1.5), 2.0), [4.0, 10.0, 0.0], [(3.0, 5.0), (9.0, 11.0)]),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_a_normal_field_behind_gaussian_noise_and_a_threshold_has_a_closed_form(case):
    """Finds variances that do not add up, a threshold on the record and not its noisy number, and draws without it."""
    channel, values, ends = HIDDEN[case]
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    gaps = {"y": np.array([False, False, True])}
    likelihood = dpjax.marginal_likelihood(model, dpjax.Microdata({"y": (values, channel)}, gaps))
    law, at = stats.norm(0.5, 2.5), {"mean": jnp.asarray(0.5)}
    terms = [np.log(law.cdf(end[1]) - law.cdf(end[0])) if isinstance(end, tuple) else law.logpdf(end) for end in ends]
    np.testing.assert_allclose(likelihood(at), np.sum(terms), rtol=1e-5)
    draw = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, at)["y"]))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(1), 20_000)), float)
    for place, end in enumerate(ends):
        noisy = stats.truncnorm(*((np.array(end) - 0.5) / 2.5), 0.5, 2.5) if isinstance(end, tuple) else None
        mean, variance = (noisy.mean(), noisy.var()) if noisy else (end, 0.0)
        # Given its noisy number z the record is Normal around 0.5 + 0.64 (z - 0.5), with the variance 1.44.
        expected, spread = 0.5 + 0.64 * (mean - 0.5), np.sqrt(1.44 + 0.64**2 * variance)
        assert abs(drawn[:, place].mean() - expected) < 4.5 * spread / np.sqrt(len(drawn))
        np.testing.assert_allclose(drawn[:, place].std(), spread, rtol=0.03)
    np.testing.assert_allclose(drawn[:, 2].std(), 2.0, rtol=0.03)


def areas(x=None, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("areas", len(x)):
        numpyro.sample("y", dist.Normal(slope * x, spread), obs=y)


def test_estimates_with_their_own_standard_errors_have_the_closed_form_of_fay_and_herriot():
    x, values, errors = np.array([0.5, 1.0, -2.0]), np.array([1.0, 0.3, -3.0]), np.array([0.2, 1.0, 3.0])
    model = dpjax.from_numpyro(areas, ["y"], x=x)
    likelihood = dpjax.marginal_likelihood(model, dpjax.LocalRelease(values, dpjax.Gaussian(errors), "y"))
    expected = stats.norm.logpdf(values, 0.7 * x, np.sqrt(0.9**2 + errors**2)).sum()
    found = likelihood({"slope": jnp.asarray(0.7), "spread": jnp.asarray(0.9)})
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def outcome(n):
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("people", n):
        label = numpyro.sample("label", dist.Bernoulli(share))
        numpyro.sample("y", dist.Normal(slope * label, 1.0))


def test_labels_hidden_beside_an_exact_outcome_are_summed_over_and_missing_ones_too():
    label, y = np.array([0, 1, 1, 0]), np.array([0.3, 1.2, -0.4, 2.0])
    missing = np.array([False, False, True, False])
    kept = dpjax.RandomizedResponse(keep=0.8, num_categories=2)
    release = dpjax.Microdata({"label": (label, kept), "y": (y, dpjax.Exact())}, {"label": missing})
    with jax.numpy_dtype_promotion("standard"):  # as NumPyro has it
        likelihood = dpjax.marginal_likelihood(dpjax.from_numpyro(outcome, ["label", "y"]), release)
        found = likelihood({"share": jnp.asarray(0.6), "slope": jnp.asarray(0.6)})
    of_label = np.where(missing[:, None], 1.0, np.where(label[:, None] == [0, 1], 0.8, 0.2))
    of_y = stats.norm.pdf(y[:, None], [0.0, 0.6])
    expected = np.log(np.sum([0.4, 0.6] * of_label * of_y, axis=1)).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_records_are_imputed_by_default_where_windows_would_be_too_long(model, monkeypatch):
    """Catches a default that refuses noise which is wide against the memory for windows."""
    wide = dpjax.LocalRelease([7, -2, 31], dpjax.DiscreteLaplace(3_000.0), "y")
    assert augment(model, wide, allow_sums=True).plan.sums_out
    monkeypatch.setattr(windows, "MAX_NUMBERS", 2**10)
    assert not augment(model, wide, allow_sums=True).plan.sums_out
    with pytest.raises(ValueError, match=r"release: given windows of .* numbers for each of 3 records"):
        dpjax.marginal_likelihood(model, wide)


def test_errors_of_the_model_are_not_taken_for_windows_that_are_too_long(model, counts, monkeypatch):
    """Imputation in place of sums hid them, such as those of sums over numbers of two float types."""

    def refuse(*arguments, **options):
        raise ValueError("numbers of two types")

    monkeypatch.setattr(windows.tabulate, "unoptimized", refuse)
    with pytest.raises(ValueError, match="numbers of two types"):
        try_sum_out(model, counts)


def test_what_cannot_be_summed_out_is_refused_by_name(model):
    release = dpjax.Release([3.0], dpjax.Laplace(1.0), dpjax.statistics.total("y"), n=3)
    with pytest.raises(ValueError, match="release: given a sum over the records; expected values of single records"):
        dpjax.marginal_likelihood(model, release)
    ages = dpjax.from_numpyro(areas, ["y"], x=np.ones(2))
    rounded = dpjax.LocalRelease([1.0, 2.0], dpjax.Rounded(dpjax.Laplace(1.0), 1.0), "y")
    with pytest.raises(ValueError, match="given the hidden field 'y'"):
        dpjax.marginal_likelihood(ages, rounded)
