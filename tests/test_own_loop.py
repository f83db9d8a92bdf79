"""The page on loops of one's own runs, and its chains have the posterior; kernels that return other things are told."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import coupling, diagnostics, exchangeable, mixture, private
from dpjax._util.pytree import shapes_of
from dpjax.models.simulation import GibbsState
from tests.tools.printed import run_checked

PAGE = Path(__file__).parents[1] / "docs" / "own-loop.md"
MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
RELEASE = dpjax.Release([1.0], dpjax.Laplace(6.0), dpjax.statistics.total("y", -3.0, 3.0), n=4)
CELLS = dpjax.models.categorical(np.ones(2))
TABLE = dpjax.Release([2.0, 2.0], dpjax.DiscreteLaplace(1.5), dpjax.statistics.cells("cell", 2), 4)
INFO = dpjax.base.ImputationInfo(jnp.zeros(()), jnp.zeros(4, int), jnp.zeros((), int))


@pytest.mark.slow
def test_loops_of_one_s_own_have_the_posterior(capsys: pytest.CaptureFixture[str]) -> None:
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run_checked(PAGE)
    exact = dpjax.importance_sample(jax.random.key(9), names["model"], names["release"], 50_000).summary()["mean"]
    means = np.asarray(names["means"])[None, 500:]
    assert abs(means.mean() - exact["mean"]) < 5 * np.hypot(diagnostics.mcse_mean(means), exact["se_mean"])
    assert names["apart"].shape == (200,)
    assert names["apart"][-1] < 0.2
    assert names["meetings"].num_censored == 0
    assert names["bounds"][-1] < names["bounds"][0]
    assert "imputation: given without_report" in capsys.readouterr().out


def kernel(returned: Any) -> Any:
    """An imputation whose kernel returns what a function of its latent state returns."""

    def imputation(model: dpjax.Model, release: dpjax.Release) -> Any:
        return lambda rng_key, latent, parameters: returned(latent)

    return imputation


WRONG = {
    "the latent state alone": (lambda latent: latent, "returns Latent"),
    "three values": (lambda latent: (latent, INFO, 1.0), "returns 3 values"),
    "a dict as a report": (
        lambda latent: (latent, {"accepted": INFO.accepted}),
        "returns dict as info",
    ),
    "records alone": (lambda latent: (latent.records, INFO), "a dict of 'y' as latent"),
    "other records": (
        lambda latent: (latent._replace(records={"y": latent.records["y"][:3]}), INFO),
        r"latent.records\['y'\] of shape \[3\]",
    ),
    "another type": (
        lambda latent: (latent._replace(records={"y": latent.records["y"].astype(int)}), INFO),
        r"latent.records\['y'\] of type int",
    ),
    "one count for all": (
        lambda latent: (latent, INFO._replace(accepted=jnp.zeros((), int))),
        r"info.accepted of shape",
    ),
    "an error": (lambda latent: latent.nothing, "raised AttributeError"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_kernel_that_returns_something_else_is_told_what(case: str) -> None:
    """Before, it was "too many values to unpack" or "'dict' object has no attribute 'num_nonfinite'"."""
    returned, message = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=message):
        dpjax.gibbs(MODEL, RELEASE, imputation=kernel(returned))


def test_a_kernel_that_is_right_is_taken() -> None:
    dpjax.gibbs(MODEL, RELEASE, imputation=kernel(lambda latent: (latent, INFO)))


KEY = jax.random.key(1)
POSITION = dpjax.data_augmentation.Position({"mean": jnp.array(0.5)}, {"y": jnp.ones(4)})


def of_target() -> private.Target:
    """Four records with a Normal likelihood of one parameter."""
    return private.target(lambda at, y: -((y - at) ** 2) / 2, lambda at: -(at**2) / 2, jnp.ones(4), jnp.zeros(()))


def free() -> Any:
    return exchangeable.soma(lambda x: -(jnp.sum(x) ** 2), jax.random.normal, lambda x: -(x**2) / 2)


def clusters() -> Any:
    component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    return mixture.gibbs([-2.0, 2.0], dpjax.Gaussian(0.5), component=component, concentration=1.0)


LATENT = dpjax.base.Latent(POSITION.records, jnp.ones(1), jnp.zeros(()))
KERNELS = {
    "gibbs": lambda: (dpjax.gibbs(MODEL, RELEASE, interweave=False).step, GibbsState(POSITION.parameters, LATENT)),
    "impute": lambda: (dpjax.impute(MODEL, RELEASE, {"mean": 0.5}).step, LATENT),
    "imwg": lambda: (dpjax.imwg()(MODEL, RELEASE), LATENT, POSITION.parameters),
    "soma": lambda: (dpjax.soma()(MODEL, RELEASE), LATENT, POSITION.parameters),
    "pcn": lambda: (dpjax.pcn(block=2, correlation=0.5)(MODEL, RELEASE), LATENT, POSITION.parameters),
    "exchangeable": lambda: (free().step, exchangeable.ExchangeableState(jnp.zeros(3), jnp.zeros(()))),
    "mixture": lambda: (kernel := clusters(), jax.eval_shape(kernel.init, jnp.array([0, 1]), KEY)),
    "private": lambda: (kernel := private.rwmh(of_target(), proposal_scale=0.5), kernel.init(jnp.zeros(()))),
    "coupled": lambda: (kernel := coupling.coupled_gibbs(MODEL, RELEASE), kernel.join(POSITION, POSITION, False)),
}
"""The kernel or its step, a state and the arguments after it."""


@pytest.mark.x64
@pytest.mark.parametrize("case", KERNELS)
def test_steps_say_what_is_wrong_with_their_arguments(case: str) -> None:
    """Before, a state in the key's place was an "unexpected PRNG key type" of JAX, and others an AttributeError."""
    kernel, state, *others = KERNELS[case]()
    step = getattr(kernel, "step", kernel)
    with pytest.raises(TypeError, match=rf"^rng_key: given {type(state).__name__}; .* Call step\(rng_key, \w+.*order"):
        step(state, KEY, *others)
    with pytest.raises(TypeError, match=r"^rng_key: given 0; expected one typed key"):
        step(0, state, *others)
    with pytest.raises(TypeError, match=r"^\w+: given tuple; expected the .* made\. Pass the state alone"):
        step(KEY, (state, None), *others)
    with pytest.raises(TypeError, match=r"^\w+: given nothing; expected a value. step takes rng_key"):
        step(KEY)


PAIRS = {
    "records": lambda: coupling.coupled_gibbs(MODEL, RELEASE),
    "counts": lambda: coupling.coupled_gibbs(CELLS, TABLE, dpjax.counts(2)),
    "exchangeable": lambda: coupling.coupled_exchangeable(
        lambda x: -(jnp.sum(x) ** 2),
        jax.random.normal,
        lambda x: -(x**2) / 2,
        sample_start=lambda key: jax.random.normal(key, (3,)),
        imputation=dpjax.soma(),
    ),
}


@pytest.mark.x64
@pytest.mark.parametrize("case", PAIRS)
def test_functions_of_pairs_say_what_is_wrong_with_their_arguments(case: str) -> None:
    """Before, all but the step raised errors of Python and JAX, or took a whole number as a flag."""
    kernel = PAIRS[case]()
    start = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), jax.eval_shape(kernel.sample_start, KEY))
    longer = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), start)
    slips = [
        (lambda: kernel.sample_start(), "key: given nothing; .* sample_start takes key"),
        (lambda: kernel.sample_start(3), "key: given 3; expected one typed key"),
        (lambda: kernel.join(start, start), "met: given nothing; .* join takes first, second, met"),
        (lambda: kernel.join(False, start, start), r"first: given False of shapes .* Call join\(first, second, met\)"),
        (lambda: kernel.join(start, longer, False), r"second: given \w+ of shapes .* as sample_start draws"),
        (lambda: kernel.join(start, start, 2), "met: given 2; expected True or False"),
        (lambda: kernel.join(start, start, jnp.ones(3, bool)), "met: given .*; expected True or False"),
    ]
    for read in (kernel.met, kernel.first, kernel.second):
        slips += [(read, rf"pair: given nothing; .* {read.__name__} takes pair")]
        slips += [(lambda read=read: read((start, start)), r"pair: given tuple; expected a \w*Pair\. Pass what join")]
    for call, message in slips:
        with pytest.raises((TypeError, ValueError), match=f"(?s)^{message}"):
            call()
    assert shapes_of(kernel.second(kernel.join(start, start, True))) == shapes_of(start)


SLIPS = {
    "no cap on the steps": (
        lambda kernel: coupling.meeting_times(KEY, kernel, num_pairs=3),
        "max_steps: given nothing",
    ),
    "no cap on estimates": (
        lambda kernel: coupling.unbiased_estimates(KEY, kernel, lambda at: at, k=1, m=2, num_pairs=3),
        "max_steps: given nothing",
    ),
    "a misspelt name": (
        lambda kernel: coupling.meeting_times(KEY, kernel, num_pair=3, max_steps=9),
        r"num_pair: given a value; .* Write num_pairs\.$",
    ),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", SLIPS)
def test_calls_that_run_pairs_name_what_is_missing(name: str) -> None:
    call, message = SLIPS[name]
    with pytest.raises(TypeError, match=f"^{message}"):
        call(coupling.coupled_gibbs(MODEL, RELEASE))


@pytest.mark.x64
def test_private_kernels_start_at_parameters_like_the_target_s() -> None:
    """Before, a key or a wrong shape in the position's place was found in the first step, by JAX's own words."""
    target = of_target()
    kernel = private.rwmh(target, proposal_scale=0.5)
    for given, expected in ((KEY, "a pytree of at least one array of numbers"), (jnp.zeros(2), "as in the target")):
        with pytest.raises((TypeError, ValueError), match=rf"(?s)^position: given .*{expected}"):
            kernel.init(given)
    with pytest.raises(TypeError, match=r"^proposal_scale: given nothing"):
        private.rwmh(target)  # type: ignore[call-arg]


def test_the_joint_density_is_one_number_with_a_gradient() -> None:
    parameters, records = {"mean": jnp.array(0.5)}, {"y": jnp.array([1.0, -1.0, 2.0])}
    expected = MODEL.log_prior(parameters) + sum(np.asarray(MODEL.log_density(parameters, records)))
    np.testing.assert_allclose(MODEL.log_joint(parameters, records), expected, rtol=1e-6)
    assert jax.grad(MODEL.log_joint)(parameters, records)["mean"].shape == ()
