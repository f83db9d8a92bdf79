"""Whatever is passed to dpjax.private in error raises an error that says so, before anything is charged or compiled."""

import math
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import models, private, statistics
from dpjax.private import Budget, Ledger, Query, accounting, noise
from tests.private.cases import AMPLE, BOUND, RECORDS, STARTS, TARGET, WALK, ledger

LAYOUT = re.compile(r"[\w., ]+: given .*; expected .*\. .*", re.DOTALL)
"""Every message names the argument, what was given, what was expected and the remedy."""
KEY = jax.random.key(0)
BUDGET = Budget(5.0, 1e-6, "replace-one")
QUERY = Query("gradient", 80.0, "secure")
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))


def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
    return jnp.dot(record, theta)


def log_prior(theta: jax.Array) -> jax.Array:
    return -0.5 * jnp.dot(theta, theta)


def make_target(**changes: Any) -> private.Target:
    arguments = {
        "log_likelihood": log_likelihood,
        "log_prior": log_prior,
        "records": jnp.asarray(RECORDS),
        "position": jnp.zeros(2),
    }
    return private.target(**(arguments | changes))


HMC = {"step_size": 0.3, "num_leapfrog": 4}
DP_HMC = HMC | {"gradient_bound": BOUND, "ratio_bound": BOUND, "tau_g": 50.0, "tau_l": 20.0}
DP_PENALTY = {"proposal_scale": 0.5, "ratio_bound": BOUND, "tau": 40.0}
DP_SGLD = {"step_size": 0.01, "sampling_rate": 0.5, "gradient_bound": BOUND, "noise_multiplier": 4.0}
DP_SGNHT = DP_SGLD | {"diffusion": 1.0}
PLAN = {"pilot": TARGET, "source": "public", "num_records": 1_000_000, "num_chains": 2, "num_iterations": 100}
PLAN |= {"budget": BUDGET}
SAMPLE = {"key": KEY, "kernel": WALK, "positions": STARTS, "ledger": ledger(AMPLE), "num_iterations": 4}
ALGORITHMS: dict[str, tuple[Callable, dict]] = {
    "hmc": (private.hmc, {"target": TARGET} | HMC),
    "rwmh": (private.rwmh, {"target": TARGET, "proposal_scale": 0.5}),
    "dp_hmc": (private.dp_hmc, {"target": TARGET, "noise": noise.jax} | DP_HMC),
    "dp_penalty": (private.dp_penalty, {"target": TARGET, "noise": noise.jax} | DP_PENALTY),
    "dp_sgld": (private.dp_sgld, {"target": TARGET, "noise": noise.jax} | DP_SGLD),
    "dp_sgnht": (private.dp_sgnht, {"target": TARGET, "noise": noise.jax} | DP_SGNHT),
    "plan": (lambda **arguments: private.plan(KEY, **arguments), PLAN),
    "sample": (private.sample, SAMPLE),
    "target": (make_target, {}),
    "Budget": (Budget, {"epsilon": 1.0, "delta": 1e-6, "neighbours": "replace-one"}),
    "Query": (Query, {"name": "x", "noise_multiplier": 1.0, "grade": "secure"}),
    "halton_steps": (
        private.halton_steps,
        {"step_size": 0.1, "low": 0.5, "high": 1.0, "length": 8, "rng": np.random.default_rng(0)},
    ),
    "noise_multiplier_for": (
        private.noise_multiplier_for,
        {"budget": BUDGET, "num_queries": 10, "sampling_rate": 1.0},
    ),
}
CLOSED = jnp.tile(RECORDS, (10, 1))
CHANGES: list[tuple[str, dict[str, Any]]] = [
    *[(name, {"target": other}) for name in list(ALGORITHMS)[:6] for other in (None, RECORDS)],
    *[(name, {"noise": other}) for name in list(ALGORITHMS)[2:6] for other in (None, "secure", noise, noise.Secure)],
    *[
        (name, {"step_size": bad})
        for name in ("hmc", "dp_hmc", "dp_sgnht")
        for bad in (0.0, -1.0, math.nan, None, "0.1")
    ],
    *[
        (name, {"step_size": bad})
        for name in ("dp_sgld", "hmc")
        for bad in (math.inf, [0.1], np.ones(2), lambda i: -0.1)
    ],
    *[("dp_hmc", {"step_size": bad}) for bad in (lambda i: jnp.ones(2), lambda i: None, lambda: 0.1, True)],
    *[(name, {"num_leapfrog": bad}) for name in ("hmc", "dp_hmc") for bad in (0, 2.0, None)],
    *[
        ("dp_hmc", {"mass": bad})
        for bad in (0.0, -1.0, np.ones(3), np.zeros((2, 2)), [[1.0, 2.0], [0.0, 1.0]], "1", None)
    ],
    *[
        ("dp_hmc", {"scale": bad})
        for bad in (1.0, np.ones(2), np.ones((2, 2)), np.eye(3), np.full((2, 2), np.nan), "1", [[1.0, 0.0], [0.0, 0.0]])
    ],
    *[("dp_hmc", {name: bad}) for name in ("gradient_bound", "ratio_bound") for bad in (0.0, math.inf, None, "1")],
    *[("dp_hmc", {name: bad}) for name in ("tau_g", "tau_l") for bad in (0.0, -1.0, math.nan, None, math.inf)],
    *[("dp_penalty", {"proposal_scale": bad}) for bad in (0.0, np.ones(3), None, "x", [1.0, -1.0], math.nan)],
    *[("dp_penalty", {"components": bad}) for bad in ("two", None)],
    *[("dp_penalty", {"tau": bad}) for bad in (0.0, None)],
    ("rwmh", {"ratio_bound": 0.0}),
    ("rwmh", {"proposal_scale": None}),
    *[("dp_sgld", {"sampling_rate": bad}) for bad in (0, 8, None)],
    *[("dp_sgld", {"block": bad}) for bad in (0, 2.5)],
    *[("dp_sgld", {"noise_multiplier": bad}) for bad in (0.0, 1e6, None)],
    *[("dp_sgnht", {"diffusion": bad}) for bad in (0.0, None, "x", math.nan)],
    *[("plan", {"pilot": bad}) for bad in (None, RECORDS, WALK)],
    *[("plan", {"source": bad}) for bad in (None, "private")],
    *[("plan", {"num_records": bad}) for bad in (0, 1e6, None)],
    *[("plan", {"num_chains": bad}) for bad in (0, None, 2.0)],
    *[("plan", {"num_iterations": bad}) for bad in (0, None, True)],
    *[("plan", {"budget": bad}) for bad in (4.0, None, ledger())],
    *[("plan", {"clipped_ratios": bad}) for bad in (1.0, -0.1, math.nan, None, "0.1")],
    *[("sample", {"key": bad}) for bad in (0, None, jax.random.split(KEY))],
    *[("sample", {"kernel": bad}) for bad in (None, TARGET, private.hmc(TARGET, **HMC))],
    *[("sample", {"ledger": bad}) for bad in (None, BUDGET, "ledger.json")],
    *[("sample", {"num_iterations": bad}) for bad in (0, 2.5, True, 10**9, "4")],
    *[("sample", {"thin": bad}) for bad in (0, 3, None, 8)],
    *[("sample", {"checkpoint": bad}) for bad in (3, "missing/run.npz", ".", "bad\0name")],
    *[
        ("sample", {"positions": bad})
        for bad in (
            None,
            jnp.zeros(2),
            jnp.zeros((0, 2)),
            jnp.zeros((3, 4)),
            jnp.zeros((1, 2, 2)),
            {"theta": STARTS},
            [STARTS, STARTS],
            np.full((1, 2), np.nan),
            np.full((1, 2), np.inf),
            np.zeros((1, 2), complex),
            np.zeros((1, 2), bool),
            np.array([["0", "1"]]),
            "starts",
            [[0.0, 0.0]],
            0.0,
        )
    ],
    *[
        ("target", {"records": bad})
        for bad in (
            None,
            {},
            0.0,
            {"x": np.ones(3), "y": np.ones(4)},
            np.array([["a", "b"]]),
            np.ones((3, 2), complex),
            [[1.0, 2.0], [3.0, 4.0]],
            "records",
            np.ones((7, 3)),
            {"x": RECORDS},
        )
    ],
    *[("target", {"position": bad}) for bad in (None, jnp.zeros(2, int), jnp.zeros(3), "0", {}, np.zeros(2, complex))],
    *[("target", {"log_likelihood": bad}) for bad in (None, 3.0, lambda t, r: r, lambda t: 0.0, lambda t, r: "x")],
    *[("target", {"log_prior": bad}) for bad in (None, lambda t: t, lambda t, r: 0.0, lambda t: 0, lambda t: t["a"])],
    ("target", {"log_likelihood": lambda t, r: jnp.sum(CLOSED @ t)}),
    ("target", {"log_prior": lambda t: jnp.sum(CLOSED @ t)}),
    *[("target", {"chunk_size": bad}) for bad in (0, 2.0, "256")],
    *[("Budget", {"epsilon": bad}) for bad in (None, 0.0, -1.0, math.inf, math.nan, "1", [1.0], np.ones(1), True)],
    *[("Budget", {"delta": bad}) for bad in (None, -0.1, 1.0, math.nan, "x", np.ones(2))],
    *[("Budget", {"neighbours": bad}) for bad in (None, "substitute", [])],
    *[("Query", {"noise_multiplier": bad}) for bad in (None, 0.0, math.nan, "x", np.ones(2))],
    *[("Query", {"count": bad}) for bad in (0, 2.0, None)],
    *[("Query", {"sampling_rate": bad}) for bad in (0.0, 1.5, None, math.nan, "x")],
    *[("Query", {"grade": bad}) for bad in (None, "fine")],
    ("Query", {"name": None}),
    *[("halton_steps", {"step_size": bad}) for bad in (0.0, None, "x")],
    *[("halton_steps", {"low": bad}) for bad in (-0.1, 2.0, None, math.nan)],
    *[("halton_steps", {"high": bad}) for bad in (math.inf, "x")],
    *[("halton_steps", {"length": bad}) for bad in (0, 2.5)],
    *[("halton_steps", {"rng": bad}) for bad in (None, 0, KEY)],
    *[("noise_multiplier_for", {"budget": bad}) for bad in (None, 1.0)],
    *[("noise_multiplier_for", {"num_queries": bad}) for bad in (0, 1.5, None)],
    *[("noise_multiplier_for", {"sampling_rate": bad}) for bad in (0.0, 2.0, None, "x", math.nan)],
]


def describe(change: dict[str, Any]) -> str:
    return ", ".join(f"{name}={str(value).split(' at 0x')[0][:24]!r}" for name, value in change.items())


CALLS: list[tuple[str, Callable[[], Any]]] = [
    (
        f"{name} {describe(change)}",
        lambda name=name, change=change: ALGORITHMS[name][0](**(ALGORITHMS[name][1] | change)),
    )
    for name, change in CHANGES
] + [
    ("Ledger None", lambda: Ledger(None)),
    ("Ledger tuple", lambda: Ledger((1.0, 1e-6))),
    ("Ledger path number", lambda: Ledger(BUDGET, 3)),
    ("Ledger path folder", lambda: Ledger(BUDGET, ".")),
    ("Ledger path missing", lambda: Ledger(BUDGET, "missing/ledger.json")),
    ("charge nothing", lambda: ledger().charge([])),
    ("charge None", lambda: ledger().charge(None)),
    ("charge a query", lambda: ledger().charge(QUERY)),
    ("charge numbers", lambda: ledger().charge([1.0])),
    ("charge times 0", lambda: ledger().charge([QUERY], 0)),
    ("charge times 1.5", lambda: ledger().charge([QUERY], 1.5)),
    ("charge times None", lambda: ledger().charge([QUERY], None)),
    ("affordable None", lambda: ledger().affordable(None)),
    ("affordable numbers", lambda: ledger().affordable([1.0])),
    ("log_delta negative", lambda: ledger().log_delta(-1.0)),
    ("log_delta NaN", lambda: ledger().log_delta(math.nan)),
    ("log_delta None", lambda: ledger().log_delta(None)),
    ("from_json None", lambda: Ledger.from_json(None)),
    ("from_json dict", lambda: Ledger.from_json({})),
    ("from_json text", lambda: Ledger.from_json("spent")),
    ("from_json list", lambda: Ledger.from_json("[]")),
    ("charge a copy", lambda: pickle.loads(pickle.dumps(ledger())).charge([QUERY])),
    ("sensitivity 0", lambda: accounting.sensitivity(0.0, "replace-one")),
    ("sensitivity None", lambda: accounting.sensitivity(None, "replace-one")),
    ("sensitivity relation", lambda: accounting.sensitivity(1.0, "other")),
    ("mu count", lambda: accounting.mu(1.5, 1.0, None, 0)),
    ("mu tau", lambda: accounting.mu(1, 0.0, None, 0)),
    ("mu tau None", lambda: accounting.mu(1, None, None, 0)),
    ("mu tau_g", lambda: accounting.mu(1, 1.0, math.nan, 1)),
    ("log_delta mu", lambda: accounting.log_delta(1.0, -1.0)),
    ("log_delta mu None", lambda: accounting.log_delta(1.0, None)),
    ("epsilon delta", lambda: accounting.epsilon(0.0, 1.0)),
    ("epsilon delta None", lambda: accounting.epsilon(None, 1.0)),
    ("epsilon mu", lambda: accounting.epsilon(1e-6, math.inf)),
    ("largest_mu epsilon", lambda: accounting.largest_mu(0.0, 1e-6)),
    ("largest_mu None", lambda: accounting.largest_mu(None, 1e-6)),
    ("max_iterations tau", lambda: accounting.max_iterations(1.0, 1e-6, 0.0, None, 0)),
    ("max_iterations free", lambda: accounting.max_iterations(1.0, 1e-6, math.inf, None, 0)),
    ("taus_for share", lambda: accounting.taus_for(1.0, 1e-6, 10, 1, gradient_share=1.0)),
    ("taus_for share None", lambda: accounting.taus_for(1.0, 1e-6, 10, 1, gradient_share=None)),
    ("taus_for count", lambda: accounting.taus_for(1.0, 1e-6, 0, 1, gradient_share=0.5)),
    ("largest_langevin_noise step", lambda: private.largest_langevin_noise(0.0, 0.1, 1.0)),
    ("largest_langevin_noise None", lambda: private.largest_langevin_noise(None, 0.1, 1.0)),
    ("largest_langevin_noise bound", lambda: private.largest_langevin_noise(0.1, 0.1, 0.0)),
    ("model_target None", lambda: private.model_target(None, {"x": np.ones(3)})),
    ("model_target array", lambda: private.model_target(MODEL, np.ones(3))),
    ("model_target names", lambda: private.model_target(MODEL, {"z": np.ones(3)})),
    ("model_target none", lambda: private.model_target(MODEL, {})),
]


@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=[name for name, _ in CALLS])
def test_what_is_wrong_is_named(call):
    with pytest.raises((TypeError, ValueError, RuntimeError)) as refused:
        call()
    assert type(refused.value) in (TypeError, ValueError, RuntimeError)
    assert LAYOUT.fullmatch(str(refused.value))
    assert not SAMPLE["ledger"].queries


def test_many_are_tried():
    assert len(CALLS) >= 250


def frame() -> Any:
    return pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0]})


def missing() -> Any:
    return pytest.importorskip("pandas").NA


ZEROS = jnp.zeros(2)
SHARED = statistics.stacked(statistics.count(), statistics.total("y", 0.0, 1.0))
COUNTED = {"y": np.ones(3)}
ADDED = Budget(1.0, 1e-6, "add-or-remove")


def released(keystream: Callable = noise.secure.keystream, budget: Budget = ADDED, **options: Any) -> Any:
    return private.release(Ledger(budget), SHARED, COUNTED, n=3, noise=noise.Secure(keystream), **options)


RAW: dict[str, Callable[[], Any]] = {
    "position of a frame": lambda: make_target(position=frame()),
    "position of a range": lambda: make_target(position=range(2)),
    **{
        f"components of {name} {number}": lambda name=name, bad=bad: ALGORITHMS[name][0](
            **ALGORITHMS[name][1], components=bad()
        )
        for name in ("rwmh", "dp_penalty")
        for number, bad in enumerate((lambda: np.array([1, 2]), missing, frame, lambda: ["all"]))
    },
    "noise_multiplier secure": lambda: noise.secure.query("a", "x", dimension=2),
    "noise_multiplier jax": lambda: noise.jax.query("a", "x", dimension=2),
    "noise_multiplier of nothing": lambda: noise.secure.query("a", None, dimension=2),
    "dimension jax": lambda: noise.jax.query("a", 1.0, dimension=0),
    **{
        f"{argument} {kind.__class__.__name__} {number}": lambda kind=kind, given=given: kind.release(*given)
        for kind in (noise.secure, noise.jax)
        for number, (argument, given) in enumerate(
            [
                ("key", (None, ZEROS, 1.0)),
                ("key", (0, ZEROS, 1.0)),
                ("value", (KEY, None, 1.0)),
                ("value", (KEY, "x", 1.0)),
                ("value", (KEY, [1.0, 2.0], 1.0)),
                ("scale", (KEY, ZEROS, None)),
                ("scale", (KEY, ZEROS, "x")),
            ]
        )
    },
    "key of a sample": lambda: noise.secure.sampling_key(None),
    "shares near 0": lambda: released(shares=[5e-324, 1.0]),
    "shares near 0, pure": lambda: released(budget=Budget(1.0, 0.0, "add-or-remove"), shares=[1.0, 5e-324]),
    "keystream too short": lambda: released(lambda size: bytes(size - 1)),
    "keystream too long": lambda: released(lambda size: bytes(size + 1)),
    "keystream of nothing": lambda: released(lambda size: None),
    "keystream of a text": lambda: released(lambda size: "0" * size),
}


@pytest.mark.parametrize("argument", RAW)
def test_what_was_raw_is_refused_by_name_and_costs_nothing(argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each raised Python's, NumPy's or JAX's own words, those of a keystream after the charge."""
    charged: list[int] = []
    monkeypatch.setattr(Ledger, "charge", lambda *_: charged.append(1))
    with pytest.raises((TypeError, ValueError), match=rf"^{argument.split(' ')[0]}: given ") as refused:
        RAW[argument]()
    assert LAYOUT.fullmatch(str(refused.value))
    assert charged == []


def test_a_keystream_that_fails_later_is_named() -> None:
    calls: list[int] = []
    with pytest.raises(ValueError, match="keystream: given a function that returns 15 bytes; expected 16 bytes"):
        private.release(
            Ledger(ADDED),
            statistics.total("y", [0.0, 0.0], [1.0, 1.0]),
            {"y": np.ones((3, 2))},
            n=3,
            noise=noise.Secure(lambda size: calls.append(size) or bytes(size - (len(calls) > 1))),
        )


def test_fractions_are_bounds() -> None:
    """They were accepted by the checks, and raised in the compiled program."""
    half = Fraction(1, 2)
    one, other = (private.clipped_gradients(TARGET, ZEROS, bound) for bound in (half, 0.5))
    np.testing.assert_array_equal(one.value, other.value)
    ratios = [private.clipped_ratios(TARGET, ZEROS, ZEROS + 1, bound).value for bound in (half, 0.5)]
    np.testing.assert_array_equal(*ratios)


def test_losses_near_the_largest_float_have_a_delta() -> None:
    """Twice such a μ is no float, and its inverse was 0."""
    for mu in (1e299, 1e301, 1e308, 1.7e308):
        assert -1e-9 < accounting.log_delta(1.0, mu) <= 0


def test_nothing_of_a_fresh_budget_is_spent_where_delta_alone_allows_noise() -> None:
    """It said that all was spent: no ε of a release fits, but noise does."""
    fresh = Ledger(Budget(1e-9, 0.999, "add-or-remove"))
    left = fresh.remaining()
    assert left.epsilon == 0 < left.rho
    assert "one sum with a noise multiplier of 0.15" in str(left)
    statistic = statistics.total("y", 0.0, 1.0)
    published = private.release(fresh, statistic, COUNTED, n=3)
    assert published.mechanism.scale == pytest.approx(left.noise_multiplier, rel=1e-6)
    with pytest.raises(private.BudgetExceeded, match="all of which is spent"):
        private.release(fresh, statistic, COUNTED, n=3)
