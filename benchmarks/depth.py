"""Steps in sequence, which an accelerator's time is made of: kernels, loops and bytes of compiled sweeps.

The programs are those that XLA compiles for a CPU, by which nothing is timed. Other backends fuse otherwise, so that
kernels and bytes are a guide; the steps of the loops are the same. A loop whose length the data decide counts its steps
in windows of IMwG and pCN, which are measured, and else counts as one step.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.hlo import Cost, program_cost
from benchmarks.rows import Row
from benchmarks.timing import Timing
from dpjax import mixture, models, private, statistics
from problems.regression import STATISTIC, make_mechanism, make_model, parameters, simulate

SIZES_OF_SWEEPS = (100, 10_000, 1_000_000)
"""Numbers of records."""

WINDOWS = ("windows of 64", "windows of 256")
CELLS = 12
NOT_TIMED = Timing(None, 0.0, 0.0, 0)

KEY = jax.eval_shape(jax.random.key, 0)
Program = tuple[Callable[..., Any], tuple[Any, ...], int]
"""A function of these arguments, of which only the shapes are used, and the coordinates of its release."""


def leave(model: dpjax.Model, release: dpjax.Release) -> Callable[..., Any]:
    """The imputation that does nothing, to see the rest of a sweep."""
    info = dpjax.base.ImputationInfo(jnp.zeros(()), jnp.zeros(release.n, int), jnp.array(0))
    return lambda rng_key, latent, parameters: (latent, info)


def regression(imputation: dpjax.base.Imputation, n: int, interweave: bool = False) -> Program:
    """A sweep of the private regression; of its records alone where nothing else moves."""
    model = make_model()
    release = dpjax.Release(np.zeros(9), make_mechanism(1), STATISTIC, n)
    if interweave:
        return sweep(model, release, imputation)
    kernel = imputation(model, release)
    state = state_shapes(dpjax.gibbs(model, release), model)
    return kernel, (KEY, state.latent, state.parameters), release.value.size


def table(release: Callable[[int], Any], imputation: dpjax.base.Imputation | None, n: int) -> Program:
    """A sweep of a table."""
    model = models.categorical(concentration=np.ones(CELLS))
    return sweep(model, release(n), imputation)


def sweep(model: dpjax.Model, release: Any, imputation: dpjax.base.Imputation | None) -> Program:
    """A whole sweep."""
    tuning = dpjax.data_augmentation.initial_tuning(jax.random.key(0), model)
    state = state_shapes(dpjax.gibbs(model, release, imputation, tuning=tuning), model)

    def step(key: jax.Array, release: Any, state: Any, tuning: Any) -> Any:
        return dpjax.gibbs(model, release, imputation, tuning=tuning).step(key, state)

    return step, (KEY, release, state, tuning), release.observed.size


def state_shapes(algorithm: dpjax.base.SamplingAlgorithm, model: dpjax.Model) -> dpjax.data_augmentation.GibbsState:
    """The shapes of parameters from the prior, and of records."""
    state: dpjax.data_augmentation.GibbsState = jax.eval_shape(
        lambda key: algorithm.init(model.sample_prior(key), key), KEY
    )
    return state


def cells(n: int) -> dpjax.Release:
    """Noisy counts of a table."""
    return dpjax.Release(np.zeros(CELLS), dpjax.DiscreteGaussian(4.0), statistics.cells("cell", CELLS), n)


def answers(n: int) -> dpjax.LocalRelease:
    """Randomized responses."""
    channel = dpjax.RandomizedResponse(keep=0.7, num_categories=CELLS)
    return dpjax.LocalRelease(np.zeros(n, int), channel, field="cell")


def clusters(sampler: mixture.Sampler, n: int) -> Program:
    """A sweep of a mixture of noisy values, with 32 slots."""
    values, base = np.zeros(n, np.float32), mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
    options = {"component": base, "concentration": 1.0, "sampler": sampler, "capacity": 32}
    algorithm = mixture.gibbs(values, dpjax.Laplace(0.6), **options)
    state = jax.eval_shape(lambda key: algorithm.init(jnp.zeros(n, int), key), KEY)
    return algorithm.step, (KEY, state), n


def hamiltonian(n: int) -> Program:
    """An iteration of DP-HMC with ten leapfrog steps."""
    target = private.target(
        lambda theta, record: -jnp.sum(jnp.square(record - theta)) / 2,
        lambda theta: -jnp.sum(jnp.square(theta)) / 2,
        jnp.zeros((n, 2)),
        jnp.zeros(2),
    )
    bounds = {"gradient_bound": 1.0, "ratio_bound": 1.0, "tau_g": 1.0, "tau_l": 1.0}
    kernel = private.dp_hmc(target, private.noise.jax, step_size=0.1, num_leapfrog=10, **bounds)
    return kernel.step, (KEY, kernel.init(jnp.zeros(2))), 2


@dataclass(frozen=True)
class Case:
    """A sweep, by the number of records up to the most; with a window, the rounds in it are measured."""

    name: str
    build: Callable[[int], Program]
    imputation: Any = None
    most: int = SIZES_OF_SWEEPS[-1]

    @property
    def window(self) -> int:
        """How many proposals are decided on side by side."""
        return getattr(self.imputation, "window", None) or 1


def imputed(name: str, imputation: Any) -> Case:
    """The imputation of the regression's records alone."""
    return Case(name, partial(regression, imputation), imputation)


DEFAULTS = (dpjax.imwg(window=1), dpjax.imwg(window=64), dpjax.imwg(window=256))
"""The default imputation, in turn and in windows."""

CASES = (
    *(imputed(f"IMwG, {name}", choice) for name, choice in zip(("in turn", *WINDOWS), DEFAULTS, strict=True)),
    imputed("IMwG, random scan", dpjax.imwg("random")),
    imputed("SOMA, m = 16", dpjax.soma(16)),
    imputed("pCN, blocks of 16, in turn", dpjax.pcn(16, 0.0, window=1)),
    imputed("pCN, blocks of 16, windows of 64", dpjax.pcn(16, 0.0, window=64)),
    Case("centred and non-centred step", partial(regression, leave, interweave=True)),
    Case("table, counts", partial(table, cells, dpjax.counts(16))),
    Case("table, randomized responses", partial(table, answers, None)),
    Case("mixture, conditional", partial(clusters, mixture.conditional()), most=SIZES_OF_SWEEPS[1]),
    Case("mixture, Neal 5", partial(clusters, mixture.neal5()), most=SIZES_OF_SWEEPS[1]),
    Case("DP-HMC, 10 leapfrog steps", hamiltonian, most=SIZES_OF_SWEEPS[1]),
)


@dataclass(frozen=True)
class Size:
    """Numbers of records, budgets of windows, and at least how many proposals are made to measure these."""

    records: tuple[int, ...] = SIZES_OF_SWEEPS
    epsilons: tuple[float, ...] = (0.1, 1, 5)
    measured: int = 20_000


SIZES = {
    "full": Size(),
    "quick": Size(records=SIZES_OF_SWEEPS[:2]),
    "tiny": Size((100,), (1,), 200),
}


def measure(size: Size) -> Iterator[Row]:
    """Rows for every sampler and size, then the rounds in windows by privacy budget."""
    for case in CASES:
        for n in size.records:
            if n <= case.most:
                yield measure_case(case, n, size.measured)
    for epsilon in size.epsilons:
        for name, choice in zip(WINDOWS, DEFAULTS[1:], strict=True):
            rounds = measure_rounds(choice, SIZES_OF_SWEEPS[1], epsilon, size.measured)
            figures = {"rounds per window": rounds, "n / steps": choice.window / rounds}
            yield Row("depth", f"IMwG, {name}, ε = {epsilon}", SIZES_OF_SWEEPS[1], 9, 1, NOT_TIMED, figures)


def measure_case(case: Case, n: int, measured: int) -> Row:
    """The row of one program."""
    program, arguments, d = case.build(n)
    rounds = measure_rounds(case.imputation, n, 1, measured) if case.window > 1 else 1.0
    cost = compile_cost(program, arguments, rounds)
    figures = {
        "steps": cost.steps,
        "n / steps": n / cost.steps,
        "kernels": cost.kernels,
        "kernels per step": cost.kernels / cost.steps,
        "MB moved": cost.moved / 1e6,
    }
    if case.window > 1:
        figures["rounds per window"] = rounds
    if n == SIZES_OF_SWEEPS[0] and case.imputation in DEFAULTS:
        figures["steps per effective draw"] = (cost.steps + parameter_steps(n)) / effective_draws()
    target = ("steps", "<=", n / 20) if (case.imputation, n) == (DEFAULTS[-1], SIZES_OF_SWEEPS[-1]) else None
    return Row("depth", case.name, n, d, 1, NOT_TIMED, figures, target=target)


def compile_cost(program: Callable[..., Any], arguments: tuple[Any, ...], rounds: float = 1.0) -> Cost:
    """The cost of a program."""
    return program_cost(jax.jit(program).lower(*arguments).compile().as_text(), unknown_trips=rounds)


@cache
def parameter_steps(n: int) -> float:
    """The steps of the rest of a sweep."""
    program, arguments, _ = regression(leave, n, interweave=True)
    return compile_cost(program, arguments).steps


def measure_rounds(imputation: Any, n: int, epsilon: float, measured: int = 20_000) -> float:
    """The mean rounds of a window, from records that are a draw from their posterior."""
    model = make_model()
    records, release = simulate(model, n, epsilon)
    kernel = imputation(model, release)
    latent = dpjax.gibbs(model, release).init(dpjax.data_augmentation.Position(parameters(), records)).latent
    keys = jax.random.split(jax.random.key(1), -(-measured // n))
    _, rounds = jax.jit(partial(jax.lax.scan, lambda latent, key: report(kernel(key, latent, parameters()))))(
        latent, keys
    )
    proposals = -(-n // getattr(imputation, "block", 1))
    return float(jnp.mean(rounds)) / -(-proposals // min(imputation.window, proposals))


def report(moved: tuple[Any, dpjax.base.ImputationInfo]) -> tuple[Any, jax.Array]:
    """What a sweep leads to, and its rounds."""
    return moved[0], moved[1].num_rounds


def effective_draws() -> float:
    """The effective draws of a sweep of the default sampler, n = 100 and ε = 1, by the benchmark of that name."""
    rows = json.loads((Path(__file__).parent / "results/effective.json").read_text())["rows"]
    return next(row["figures"]["effective per draw"] for row in rows if row["case"].startswith("ε = 1: IMwG and"))
