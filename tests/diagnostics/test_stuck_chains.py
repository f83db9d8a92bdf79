"""A chain that cannot move is no perfect chain: it is told from what is constant by construction, and said so."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics
from dpjax.diagnostics.warnings import name_stuck, stuck_chains
from dpjax.mcmc.until import Convergence, assess
from dpjax.mixture.posterior import MixturePosterior
from dpjax.models.simulation import free_numbers
from dpjax.posterior.reports import name_refused
from dpjax.private.runs.draws import PrivateDraws
from dpjax.smc.sample import warn_of_stuck
from tests.tools.conjugate import MODEL, release_of

CHAINS, DRAWS = 4, 1_000
MOVING = np.random.default_rng(1).normal(size=(CHAINS, DRAWS))
ONE = np.full((CHAINS, DRAWS), 0.1)  # whose sums are rounded
APART = np.broadcast_to(np.array([0.1, 0.4, -0.3, 2.0])[:, None], (CHAINS, DRAWS)).copy()
PARTLY = np.where(np.arange(CHAINS)[:, None] == 2, 0.3, MOVING)


def fixed_prior(key):
    """The mean varies under the prior, the offset does not."""
    return MODEL.sample_prior(key) | {"offset": jax.numpy.asarray(0.1)}


def with_draws(posterior, **draws):
    """A posterior of these draws, of a model with a parameter that is constant by construction."""
    return replace(posterior, draws=draws, model=MODEL._replace(sample_prior=fixed_prior))


@pytest.mark.parametrize("draws", [ONE, ONE[:1], ONE[:2]], ids=["four", "one", "two"])
def test_of_draws_that_are_one_nothing_is_known(draws):
    for size in (diagnostics.ess_bulk, diagnostics.ess_tail, diagnostics.ess_mean, diagnostics.split_r_hat):
        assert np.isnan(size(draws))
    assert np.isnan(diagnostics.ess_quantile(draws, 0.3))


@pytest.mark.parametrize("draws", [APART, APART[:2]], ids=["four", "two"])
def test_chains_that_stand_apart_disagree_without_end(draws):
    assert diagnostics.split_r_hat(draws) > 1e6
    assert diagnostics.ess_bulk(draws) < 10


def test_quick_numbers_of_few_values_have_sizes():
    coin = (MOVING > 1).astype(float)
    assert diagnostics.ess_bulk(coin) > 400
    assert diagnostics.ess_tail(coin) > 400
    assert abs(diagnostics.split_r_hat(np.where(MOVING > 0, 1.0, -1.0)) - 1) < 0.01


def test_which_chains_never_moved():
    assert stuck_chains(ONE, free=True).all()
    assert not stuck_chains(ONE, free=False).any()
    assert stuck_chains(APART, free=False).all()
    np.testing.assert_array_equal(stuck_chains(PARTLY, free=False), [False, False, True, False])
    rare = np.zeros((CHAINS, DRAWS), int)
    rare[0, 3] = 1  # chains that stand where one that moves has been, too
    assert not stuck_chains(rare, free=True).any()
    several = np.stack([MOVING, ONE, PARTLY], axis=2)
    assert name_stuck({"theta": several}, {"theta": np.array([True, True, True])}) == ["theta[1]", "theta[2] (chain 2)"]


def test_what_is_constant_by_construction_is_known_from_the_prior():
    model = MODEL._replace(sample_prior=fixed_prior)
    free = free_numbers(model, {"mean": MOVING, "offset": ONE})
    assert free["mean"].all()
    assert not free["offset"].any()
    assert free_numbers(model, {"mean": MOVING, "offset": MOVING}) == {}  # nothing is drawn where all moves


@pytest.mark.parametrize(
    ("draws", "rows"),
    [
        (ONE, "mean"),
        (ONE[:1], "mean"),
        (APART, "mean"),
        (PARTLY, r"mean \(chain 2\)"),
    ],
    ids=["one value", "one chain", "apart", "one of four"],
)
def test_a_summary_says_what_never_moved(posterior, draws, rows):
    info = {"acceptance_rate": np.ones(draws.shape), "num_nonfinite": np.zeros(draws.shape, int)}
    poor = replace(with_draws(posterior, mean=draws, offset=draws * 0 + 0.1), info=info)
    with pytest.warns(UserWarning, match=rf"chains that never moved: {rows}\. .*initial=") as caught:
        table = poor.summary()
    assert len(caught) == 1
    assert "offset" not in str(caught[0].message)
    assert table["offset"]["sd"] == 0
    assert table["offset"]["mean"] == 0.1
    if draws is not PARTLY:  # the size alone does not see that one chain stands in the middle of the others
        assert not table["mean"]["ess_bulk"] > 400


def test_constants_by_construction_and_what_is_derived_are_no_complaint(posterior):
    with_draws(posterior, mean=MOVING, offset=ONE, squared=ONE).summary()


def test_records_that_never_moved_are_named(posterior):
    rates = np.where(np.arange(CHAINS)[:, None] == 1, 0.0, posterior.info["acceptance_rate"])
    still = replace(posterior, info=posterior.info | {"acceptance_rate": rates})
    still.summary()  # the non-centred step moves them
    held = replace(still, plan=replace(posterior.plan, interweave=False))
    with pytest.warns(UserWarning, match=r"chains that never moved: the records \(chain 1\)\."):
        held.summary()


def test_counts_that_known_totals_fix_are_no_complaint(posterior):
    plan = replace(posterior.plan, imputation=dpjax.counts(), interweave=False)
    none, some = np.zeros((CHAINS, 5)), np.tile([[0.0], [0.5]], (2, 5))
    assert name_refused(none, plan) == []
    assert name_refused(some, plan) == ["the records (chain 0, 2)"]
    assert name_refused(none, replace(plan, imputation=dpjax.imwg())) == ["the records (chain 0, 1, 2, 3)"]


def test_a_look_does_not_take_what_never_moved_for_good():
    good = assess({"mean": MOVING, "offset": ONE}, {"mean": True, "offset": False})
    assert good.ess > 3_000
    assert assess({"mean": ONE, "squared": MOVING}, {"mean": True}) == Convergence(0.0, np.inf)
    assert assess({"mean": ONE}) == assess({}) == Convergence(0.0, np.inf)
    assert assess({"mean": APART}).r_hat > 1e6


def frozen(key, parameters, records):
    """An update that does not move."""
    return parameters


@pytest.mark.x64
@pytest.mark.parametrize("num_chains", [1, 3])
def test_a_run_whose_parameters_cannot_move_goes_on_and_says_so(num_chains):
    model = MODEL._replace(update=frozen, derived=None, sample_prior=fixed_prior)
    starts = {"mean": np.full(num_chains, 0.1), "offset": np.full(num_chains, 0.1)}
    options = {"num_warmup": 20, "num_samples": 700, "interweave": False, "refresh": False}
    posterior = dpjax.sample(
        jax.random.key(1),
        model,
        release_of(),
        num_chains=num_chains,
        initial=starts,
        until=dpjax.until(ess=100, r_hat=1.05),
        progress=False,
        **options,
    )
    assert "all of num_samples were drawn, not enough" in posterior.describe()
    with pytest.warns(UserWarning, match=r"chains that never moved: mean\. "):
        table = posterior.summary()
    assert np.isnan(table["mean"]["ess_bulk"])


@pytest.mark.x64
def test_a_batch_names_the_release_whose_chains_never_moved():
    options = {"num_warmup": 20, "num_samples": 50, "num_chains": 2, "progress": False}
    batch = dpjax.sample_batch(jax.random.key(1), MODEL, [release_of(), release_of(3.0)], **options)
    still = replace(batch, draws={"mean": np.stack([ONE[:2, :50], MOVING[:2, :50]])})
    with pytest.warns(UserWarning, match=r"chains that never moved: mean\[0\]\. "):
        still.summary()


def test_private_draws_that_never_moved_are_named():
    draws = {"theta": np.stack([MOVING[:1], ONE[:1]], axis=2)}
    published = PrivateDraws(draws, None, None, DRAWS, 1, None, {})
    with pytest.warns(UserWarning, match=r"chains that never moved: theta\[1\]\. .*\(positions\)"):
        published.summary()


@pytest.mark.x64
def test_a_mixture_whose_concentration_never_moved_is_named():
    component = dpjax.mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    options = {"component": component, "num_warmup": 5, "num_samples": 8, "num_chains": 2, "progress": False}
    prior = dpjax.models.GammaPrior(2.0, 1.0)
    learnt = dpjax.mixture.sample(jax.random.key(1), [-2.0, -1.7, 1.5], None, concentration=prior, **options)
    clusters = np.random.default_rng(2).integers(1, 4, (CHAINS, DRAWS))
    info = {"num_nonfinite": np.zeros((CHAINS, DRAWS), int)}
    still = replace(learnt, draws={"num_clusters": clusters, "concentration": ONE}, info=info)
    assert isinstance(still, MixturePosterior)
    with pytest.warns(UserWarning, match=r"chains that never moved: concentration\. "):
        assert list(still.summary()) == ["num_clusters", "concentration"]
    number = replace(still.problem, concentration=jax.numpy.asarray(0.1))
    assert list(replace(still, problem=number).summary()) == ["num_clusters"]
    single = replace(still, draws={"num_clusters": np.ones_like(clusters), "concentration": MOVING**2})
    assert np.isnan(single.summary()["num_clusters"]["ess_bulk"])


def test_islands_whose_particles_are_one_are_named():
    with pytest.warns(UserWarning, match=r"All particles of an island are identical: mean \(island 2\)\. No move"):
        warn_of_stuck(MODEL, {"mean": PARTLY})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_stuck(MODEL._replace(sample_prior=fixed_prior), {"mean": MOVING, "offset": ONE})
