"""What is paid for is returned, whatever breaks a run off, and a run goes on from where it ended."""

import os
import pickle
import signal
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private
from dpjax.private import noise
from dpjax.private.noise.secure import keystream
from dpjax.private.runs import run as run_module
from dpjax.private.runs.run import Interruption
from tests.private.cases import BOUND, STARTS, TARGET, WALK
from tests.private.runs.paid_runs import KEY, break_off, go, ledger, make_whole, shorten_parts


@pytest.fixture(scope="module")
def whole() -> private.PrivateDraws:
    return make_whole()


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch):
    shorten_parts(monkeypatch)


@pytest.fixture(autouse=True)
def _ctrl_c_is_obeyed():
    """Also where the tests run in the background, in which a shell lets processes ignore it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KeyboardInterrupt(), r"was interrupted after 2 of 40 iterations\."),
        (RuntimeError("INTERNAL: out of memory"), r"stopped after 2 of 40 iterations \(RuntimeError: INTERNAL"),
        (MemoryError(), r"stopped after 2 of 40 iterations \(MemoryError"),
    ],
)
def test_whatever_breaks_a_run_off_its_draws_are_returned(monkeypatch, whole, error, why):
    spent = ledger()
    break_off(monkeypatch, error)
    with pytest.warns(UserWarning, match=f"{why}.*Pass the draws as positions to continue"):
        result = go(spent=spent)
    np.testing.assert_array_equal(result.draws, whole.draws[:, :2])
    assert spent.queries[0].count == 3 * 3  # the part that failed is paid for, too


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("INTERNAL: out of memory")])
def test_an_error_before_any_draw_is_raised(monkeypatch, error):
    break_off(monkeypatch, error, at=1)
    with pytest.raises(type(error)):
        go()


@pytest.mark.x64
@pytest.mark.parametrize("at", [1, 7, 20])
def test_an_interruption_loses_nothing_that_secure_noise_was_drawn_for(at):
    """It comes within the host's callback, where it would be an error of the compiled program."""
    calls = []

    def interrupting(size: int) -> bytes:
        if size > 8:  # not the trial before the program is traced
            calls.append(size)
        if len(calls) == at + 2:  # after the rehearsal
            os.kill(os.getpid(), signal.SIGINT)
        return keystream(size)

    source, spent = noise.Secure(interrupting), ledger()
    kernel = private.dp_penalty(TARGET, source, proposal_scale=1.0, ratio_bound=BOUND, tau=1.0)
    with pytest.warns(UserWarning, match="interrupted"):
        result = private.sample(KEY, kernel, STARTS, spent, num_iterations=40)
    assert 0 < result.num_iterations < 40
    assert result.draws.shape == (3, result.num_iterations, 2)
    assert spent.queries[0].count == 3 * result.num_iterations
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interruption_ends_the_part_that_is_running(monkeypatch, whole):
    real, calls = run_module.advance, []

    def impatient(*arguments):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(run_module, "advance", impatient)
    with pytest.warns(UserWarning, match="after 2 of 40"):
        result = go()
    np.testing.assert_array_equal(result.draws, whole.draws[:, :2])


def test_a_process_that_ignores_interruptions_goes_on_to_do_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
    assert not interruption.noted
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_ledger_that_is_lost_ends_the_run_with_its_draws(tmp_path, monkeypatch, whole):
    path = tmp_path / "ledger.json"
    spent, real = private.Ledger(ledger().budget, path), run_module.advance
    calls = []

    def removing(*arguments):
        calls.append(1)
        if len(calls) == 4:
            path.unlink()
        return real(*arguments)

    monkeypatch.setattr(run_module, "advance", removing)
    with pytest.warns(UserWarning, match="after 4 of 40.*that is gone"):
        result = go(spent=spent)
    np.testing.assert_array_equal(result.draws, whole.draws[:, :4])
    assert "num_iterations=4" in repr(result)


def test_a_budget_that_others_spend_is_used_to_the_last_iteration(monkeypatch, whole):
    spent, real = ledger(), run_module.advance
    affordable = spent.affordable(WALK.queries)
    spent.charge(WALK.queries, affordable - 40 * 3)

    def sharing(run, status, length):
        if status.done == 5:
            spent.charge(WALK.queries, 30 * 3 + 1)
        return real(run, status, length)

    monkeypatch.setattr(run_module, "advance", sharing)
    monkeypatch.setattr(run_module, "GROWTH", 4)
    with pytest.warns(UserWarning, match="after 9 of 40.*BudgetExceeded"):
        result = go(spent=spent)
    np.testing.assert_array_equal(result.draws, whole.draws[:, :9])
    assert spent.affordable(WALK.queries) == 2


def test_a_run_goes_on_from_a_result(whole):
    first = go(num_iterations=25)
    result = go(pickle.loads(pickle.dumps(first)), spent=first.ledger, num_iterations=15)
    np.testing.assert_array_equal(result.draws, whole.draws)
    assert result.num_iterations == 40
    for rate, expected in zip(result.not_private, whole.not_private, strict=True):
        np.testing.assert_allclose(rate, expected, rtol=1e-5)


def test_only_its_own_kernel_goes_on_from_a_result(whole):
    hamiltonian = private.hmc(TARGET, step_size=0.1, num_leapfrog=1)._replace(queries=WALK.queries)
    with pytest.raises(ValueError, match=r"a run of another kernel.*WalkState"):
        private.sample(KEY, hamiltonian, whole, ledger(), num_iterations=5)
    with pytest.raises(ValueError, match="as in the run that goes on"):
        go(whole, thin=2)


def test_draws_pickle_and_have_a_summary(whole):
    copy = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(copy.draws, whole.draws)
    assert copy.privacy_spent() == whole.privacy_spent()
    with pytest.warns(UserWarning, match="iterations cost privacy"):
        table = copy.summary(num_warmup=10, quantiles=(0.1, 0.9))
    assert tuple(table) == ("position[0]", "position[1]")
    np.testing.assert_allclose(table.columns["mean"], np.mean(whole.draws[:, 10:], axis=(0, 1)), rtol=1e-5)
    lowest = np.quantile(whole.draws[:, 10:], 0.1, axis=(0, 1))
    np.testing.assert_allclose(table.columns["10%"], lowest, rtol=1e-5)
    with pytest.raises(ValueError, match="leaves at least 4"):
        copy.summary(num_warmup=37)


def test_draws_go_to_arviz_without_what_is_not_private(whole):
    pytest.importorskip("arviz")
    named = replace(whole, draws={"theta": whole.draws, "pair": (whole.draws[..., 0], whole.draws[..., 1])})
    data = named.to_arviz(num_warmup=10)
    assert set(data.posterior.data_vars) == {"theta", "pair.0", "pair.1"}
    assert data.posterior["theta"].shape == (3, 30, 2)
    assert "sample_stats" not in data
    np.testing.assert_array_equal(np.asarray(data.posterior["pair.1"]), whole.draws[:, 10:, 1])


def test_a_run_that_stands_still_is_given_up():
    """A start so far out that the records, unlike the prior, let no proposal pass."""

    def log_likelihood(theta, record):
        return -0.5e8 * (record - theta[0]) ** 2

    kernel = private.dp_penalty(
        private.target(
            lambda theta, record: -0.5e8 * (record - theta[0]) ** 2,
            lambda theta: 0.0 * theta[0],
            np.ones(8),
            STARTS[0, :1],
        ),
        noise.jax,
        proposal_scale=1.0,
        ratio_bound=1e9,
        tau=1e-9,
    )
    queries = (private.Query("log-likelihood ratio", 80.0, "simulation-grade"),)
    spent = ledger()
    with pytest.warns(UserWarning, match=r"no proposal was accepted.*lead the chains nearer to the posterior"):
        result = private.sample(KEY, kernel._replace(queries=queries), jnp.ones((4, 1)), spent, num_iterations=400)
    assert 50 <= result.num_iterations < 400
    assert spent.queries[0].count == 4 * result.num_iterations
