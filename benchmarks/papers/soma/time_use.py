"""Tables 1 and 2: shares of the day by women and men, Dirichlet records of a released log-composition."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.problems import Problem
from benchmarks.papers.soma.time_use_file import read_shares
from dpjax import models, statistics
from dpjax.diagnostics import ess_bulk, split_r_hat

LOWER, EPSILON = 0.0006, 10.0
ACTIVITIES = ("personal care", "eating and drinking", "other activities")
SIZES = {"female": 3_528, "male": 3_128}
PAPER_MEANS = {"female": (0.4112, 0.0507, 0.5381), "male": (0.3919, 0.0508, 0.5573)}
PAPER = {
    "female": {
        "soma": (1.0469, 1.0333, 1.0481, 2754.5, 3576.5, 2713.6),
        "imwg": (1.1041, 1.0816, 1.1068, 2373.5, 2965.0, 2348.7),
    },
    "male": {
        "soma": (1.0492, 1.0344, 1.0506, 3406.8, 4510.3, 3342.5),
        "imwg": (1.1994, 1.1546, 1.2043, 2249.0, 2777.4, 2216.6),
    },
}
"""R-hat of the three shapes after 10⁵ iterations, then their ESS after 10⁶, of 20 runs."""

CONCENTRATION = 30.0
"""The sum of the shapes of simulated records: our choice, because the paper gives means alone."""

EARLY = 100_000
"""R-hat is taken after so many proposals, as in the paper."""

SLICES = 30
"""Slice updates of each shape in a sweep; how many the paper makes, and how often, it does not say."""

WARM_UP = 400
"""Sweeps of IMwG that no figure counts: from the prior some chains take 100 to 200 sweeps."""

UPDATE = dpjax.data_augmentation.parameter_kernel("coordinate_slice", num_steps=SLICES)
SAMPLERS = {"soma": dpjax.soma(), "imwg": dpjax.imwg()}


def measure(chains: int, proposals: int, file: str | None) -> dict[str, Any]:
    """R-hat after 100,000 proposals and ESS after all, by sex and sampler, and the mean shares.

    One proposal is one iteration here; the parameters move after every n of them. All chains have been warmed up from
    the prior before. Without a file the records are simulated at the paper's fitted means.
    """
    shares = None if file is None else read_shares(Path(file))
    result: dict[str, Any] = {"records": "simulated" if file is None else "read from a file"}
    for sex in SIZES:
        problem = make_problem(sex, None if shares is None else shares[sex])
        sweeps = -(-proposals // problem[1].n)
        rows = {name: measure_sampler(problem, sampler, chains, sweeps) for name, sampler in SAMPLERS.items()}
        for name, row in rows.items():
            row["paper"] = {"r_hat": PAPER[sex][name][:3], "ess": PAPER[sex][name][3:], "mean": PAPER_MEANS[sex]}
        result[sex] = {"n": problem[1].n, "sweeps": sweeps, "samplers": rows}
    return result


def make_problem(sex: str, shares: np.ndarray | None) -> Problem:
    """The model and a release, with noise of scale −3 log(a) / ε, of these shares [n, 3] or of simulated ones."""
    model = models.dirichlet(models.GammaPrior(1.0, 0.1), 3)
    statistic = statistics.log_composition("share", LOWER, dimension=3)
    records_key, noise_key = jax.random.split(jax.random.key(10 + list(SIZES).index(sex)))
    n = SIZES[sex] if shares is None else len(shares)
    if shares is None:
        mean = jnp.array(PAPER_MEANS[sex])
        records = model.sample_records(records_key, {"shape": CONCENTRATION * mean / mean.sum()}, n)
    else:
        records = {"share": jnp.asarray(shares, float)}
    template = dpjax.Release(np.zeros(3), dpjax.Laplace(-3 * np.log(LOWER) / EPSILON), statistic, n)
    return model, template.sample(noise_key, records)


def measure_sampler(problem: Problem, imputation: dpjax.base.Imputation, chains: int, sweeps: int) -> dict[str, Any]:
    """The diagnostics of the shapes and the posterior mean of the shares."""
    shapes, accepted = run_chains(problem, imputation, chains, sweeps)
    return {
        "r_hat": split_r_hat(shapes[:, : EARLY // problem[1].n]).tolist(),
        "ess": ess_bulk(shapes).tolist(),
        "mean": (shapes / shapes.sum(axis=-1, keepdims=True)).mean(axis=(0, 1)).tolist(),
        "acceptance_rate": float(accepted.mean()),
        "shapes": shapes[0].round(4).tolist(),
    }


def run_chains(problem: Problem, imputation: dpjax.base.Imputation, chains: int, sweeps: int) -> tuple:
    """The shapes [chain, sweep, 3] and the share of proposals accepted [chain, sweep] of chains after their warm-up."""
    model = problem[0]

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> tuple:
        parameter_key, records_key, *run_keys = jax.random.split(key, 4)

        def sweep(algorithm: Any, run_key: jax.Array, state: Any, count: int) -> tuple:
            def step(state: Any, index: jax.Array) -> tuple:
                state, info = algorithm.step(jax.random.fold_in(run_key, index), state)
                return state, (state.parameters["shape"], info.imputation.acceptance_rate)

            return jax.lax.scan(step, state, jnp.arange(count))

        warm, measured = (dpjax.gibbs(*problem, part, parameter_kernel=UPDATE) for part in (dpjax.imwg(), imputation))
        start = warm.init(model.sample_prior(parameter_key), records_key)
        state, _ = sweep(warm, run_keys[0], start, WARM_UP)
        return sweep(measured, run_keys[1], state, sweeps)[1]

    return tuple(np.asarray(part) for part in run(jax.random.split(jax.random.key(12), chains)))


def draw(result: dict[str, Any], axes: Any) -> None:
    """The first chain's shapes after each sweep that follows the warm-up."""
    for place, (panel, activity) in enumerate(zip(axes, ACTIVITIES, strict=True)):
        for sex in SIZES:
            for name, row in result[sex]["samplers"].items():
                panel.plot(np.array(row["shapes"])[:, place], label=f"{sex}, {name}", linewidth=0.8)
        panel.set(xlabel="sweeps of n proposals", ylabel="shape", title=activity)
    axes[0].legend(fontsize="small")
