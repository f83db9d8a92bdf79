"""Sweeps over parts of the records: their decisions one by one; invariance; a mutation; runs that make them."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.data_augmentation.records.parts import NUM_PARTS, num_proposals, part_of
from dpjax.data_augmentation.refresh import prior_alone
from dpjax.mcmc import rates
from dpjax.models.simulation import init_latent
from dpjax.numerics import decision_uniforms
from tests.data_augmentation.records.test_perfect_start import BOUNDED, NORMAL, PARAMETER_LAWS, noise_p
from tests.tools.perfect_start import REJECT, parameter_p_value, run

N, SCALE = 46, 0.8
RELEASE = dpjax.Release(jnp.array([2.0]), dpjax.Laplace(SCALE), BOUNDED.statistic, N)
THETA = {"mean": jnp.array(0.3), "variance": jnp.array(1.5)}
PRECISION = 1e-10 if RELEASE.value.dtype == jnp.float64 else 1e-4


def starts_of(n: int) -> list[int]:
    return [int(part_of(n, index).start) for index in range(NUM_PARTS)]


@pytest.mark.parametrize("n", [46, 48, 1_000])
def test_parts_hold_every_record_and_no_other(n: int) -> None:
    size = part_of(n, 0).size
    held = np.concatenate([np.arange(start, start + size) for start in starts_of(n)])
    np.testing.assert_array_equal(np.unique(held), np.arange(n))


@pytest.mark.parametrize(("first", "number"), [(0, 16), (14, 4), (5, 40), (3, 0)])
def test_the_number_of_proposals_to_each_record(first: int, number: int) -> None:
    made, size = np.zeros(N, int), part_of(N, 0).size
    for index in range(number):
        start = starts_of(N)[(first + index) % NUM_PARTS]
        made[start : start + size] += 1
    np.testing.assert_array_equal(num_proposals(N, first, number), made)


def total(records: np.ndarray) -> float:
    return np.clip(records, -2.0, 2.0).sum()


def test_parts_are_decided_on_in_turn() -> None:
    """The last two parts overlap: records in both get two proposals, and may accept both."""
    key, first, number = jax.random.key(5), 13, 5
    latent = init_latent(RELEASE, NORMAL.sample_records(jax.random.key(3), THETA, N))
    kernel = jax.jit(dpjax.imwg().build_partial_kernel(NORMAL, RELEASE))
    ours, info = kernel(key, latent, THETA, jnp.int32(first), jnp.int32(number))
    y, accepted = np.array(latent.records["y"], float), np.zeros(N, int)
    for index in range(number):
        start, size = starts_of(N)[(first + index) % NUM_PARTS], part_of(N, 0).size
        proposal_key, accept_key = jax.random.split(jax.random.fold_in(key, index))
        proposals = np.asarray(NORMAL.sample_records(proposal_key, THETA, size)["y"], float)
        uniforms = np.asarray(decision_uniforms(accept_key, (size,)), float)
        for place, proposal, uniform in zip(range(start, start + size), proposals, uniforms, strict=True):
            moved = y.copy()
            moved[place] = proposal
            if np.log(uniform) < (abs(2.0 - total(y)) - abs(2.0 - total(moved))) / SCALE:
                y, accepted[place] = moved, accepted[place] + 1
    np.testing.assert_allclose(ours.records["y"], y, rtol=PRECISION)
    np.testing.assert_array_equal(info.accepted, accepted)
    assert info.acceptance_rate == pytest.approx(accepted.sum() / (number * part_of(N, 0).size))
    np.testing.assert_allclose(ours.statistic, [total(y)], rtol=PRECISION)
    np.testing.assert_allclose(ours.log_density, RELEASE.log_density(ours.statistic), rtol=PRECISION)


@dataclass(frozen=True)
class InParts:
    """Sweeps over three parts, beginning with a fixed one, or with that of the largest record, which is a fault."""

    by_records: bool

    def __call__(self, model, release):
        kernel = dpjax.imwg().build_partial_kernel(model, release)

        def step(key, latent, parameters):
            largest = jnp.argmax(latent.records["y"]) // part_of(release.n, 0).size
            first = jnp.where(self.by_records, largest, 4).astype(jnp.int32)
            return kernel(key, latent, parameters, first, jnp.int32(3))

        return step


@pytest.mark.x32
@pytest.mark.parametrize("by_records", [False, True])
def test_the_joint_law_is_invariant_unless_records_choose_the_part(by_records: bool) -> None:
    replicates = run(jax.random.key(32), NORMAL, RELEASE, InParts(by_records), num_sweeps=6)
    p_value = min(noise_p(RELEASE, replicates.noise), parameter_p_value(replicates, PARAMETER_LAWS[id(NORMAL)]))
    assert (p_value < REJECT) == by_records


@pytest.fixture(scope="module")
def in_parts() -> dpjax.Posterior:
    """A run of 1,001 records, for which sweeps over parts seem to cost next to nothing."""
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    release = dpjax.Release([400.0], dpjax.Laplace(30.0), dpjax.statistics.total("y", -20.0, 20.0), n=1_001)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rates, "PART_COST", 1e-3)
        return dpjax.sample(jax.random.key(6), model, release, num_warmup=600, num_samples=2_000, progress=False)


@pytest.mark.x32
def test_a_run_in_parts_has_the_exact_posterior(in_parts: dpjax.Posterior) -> None:
    """The sum of the records is Normal given the mean; the limits at ±20 are never reached."""
    assert in_parts.plan.noise != "held"
    assert int(in_parts.refresh.parts) == 1
    mean = np.linspace(-0.2, 1.0, 2_001)
    noise = np.linspace(-500.0, 500.0, 4_001)
    density = np.exp(-np.abs(noise) / 30.0)
    likelihood = np.exp(-0.5 * (400.0 - noise - 1_001 * mean[:, None]) ** 2 / 1_001) @ density
    weights = likelihood * np.exp(-0.5 * (mean / 2.0) ** 2)
    weights /= weights.sum()
    centre = weights @ mean
    sd = np.sqrt(weights @ (mean - centre) ** 2)
    draws = np.asarray(in_parts.draws["mean"], float)
    size = float(dpjax.diagnostics.ess_bulk(draws))
    assert abs(draws.mean() - centre) < 4 * sd / np.sqrt(size)
    assert draws.std() == pytest.approx(sd, rel=4 * 1.5 / np.sqrt(size))


@pytest.mark.x64
def test_reports_of_a_run_in_parts(in_parts: dpjax.Posterior) -> None:
    assert "over 1 part of 16 of the records" in in_parts.describe()
    per_record = in_parts.info["acceptance_rate_per_record"]
    assert np.all((per_record >= 0) & (per_record <= 1))
    made = in_parts.info["num_sweeps"]
    rate = (in_parts.info["acceptance_rate"] * made).sum(axis=1) / made.sum(axis=1)
    # Seven records are in two parts: they count twice in the one mean and once in the other.
    np.testing.assert_allclose(per_record.mean(axis=1), rate, rtol=0.01)
    completed = in_parts.completed(jax.random.key(7), 3)
    assert np.shape(completed.records["y"]) == (3, 1_001)


def test_whole_sweeps_have_no_rates_of_parts() -> None:
    assert int(prior_alone(NORMAL).parts) == NUM_PARTS
