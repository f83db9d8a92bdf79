"""Hashes of what dpjax draws, call by call: a change of the house must leave every bit as it is.

``python -m tests.tools.bit_for_bit NEW.json`` writes the hashes of all calls, in the precision and on the devices that
JAX is told of (`JAX_ENABLE_X64`, `XLA_FLAGS`); with ``--against OLD.json`` it names the calls whose hashes differ, and
fails if there are any. Hashes are comparable on one machine with one set of versions alone.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import dpjax
from dpjax import coupling, mixture, models, private, statistics

SHORT = {"num_chains": 2, "num_warmup": 24, "num_samples": 24, "progress": False}
GENERATOR = np.random.default_rng(5)
QUIET = {"progress": False}
KEY = jax.random.key(14)
N = 60
POINTS = GENERATOR.normal(size=N)
CELLS = statistics.cells("cell", 3)
TOTAL = statistics.total("y", -4.0, 4.0)

CATEGORICAL = models.categorical([1.0, 2.0, 0.5])
NORMAL = models.normal(models.NormalPrior(0.0, 3.0), 1.0)
FREE_NORMAL = models.normal(models.NormalPrior(0.0, 3.0), models.InverseGammaPrior(3.0, 2.0))
REGRESSION = models.linear_regression(
    covariate_mean=[0.0],
    covariate_cov=[[1.0]],
    coef_prior=models.NormalPrior(0.0, 2.0),
    noise_variance=1.0,
)
NAIVE_BAYES = models.naive_bayes([1.0, 1.0], np.ones((2, 2, 2)))

TABLE = dpjax.Release([14.0, 40.0, 5.0], dpjax.DiscreteLaplace(1.5), CELLS, N)
SUM = dpjax.Release([21.0], dpjax.Laplace(2.0), TOTAL, N)
GRAM = dpjax.Release(
    [60.0, 3.0, 30.0, 58.0, 22.0, 80.0],
    dpjax.Gaussian(4.0),
    lambda record: gram(record),
    N,
)
RESPONSES = dpjax.LocalRelease(np.arange(N) % 3, dpjax.RandomizedResponse(keep=0.7, num_categories=3))
UNKNOWN = dpjax.UnknownCount(models.PoissonCount(50.0))


def gram(record: dict[str, jax.Array]) -> jax.Array:
    """The products of (1, x, y)."""
    row = jnp.concatenate([jnp.ones(1), record["x"], record["y"][None]])
    return (row[:, None] * row[None])[jnp.triu_indices(3)]


def bent(n: int) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    with numpyro.plate("people", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(jnp.tanh(slope * x), 1.0))


def visits(n: int) -> None:
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.5))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Poisson(rate))


BENT = dpjax.from_numpyro(bent, ["x", "y"])
VISITS = dpjax.from_numpyro(visits, ["y"])
NOISY_VISITS = dpjax.LocalRelease(np.arange(N) % 7, dpjax.DiscreteLaplace(2.0), "y")
CROSSED = dpjax.Release([9.0], dpjax.Laplace(3.0), lambda record: (record["x"] * record["y"])[None], N)


def drawn(model: dpjax.Model, release: Any, seed: int = 1, **options: Any) -> Any:
    """Draws and reports of a run."""
    posterior = dpjax.sample(jax.random.key(seed), model, release, **SHORT | options)
    return posterior.draws, posterior.info


def continued(model: dpjax.Model, release: Any) -> Any:
    """Draws of a run that was saved and read again."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "run.npz")
        drawn(model, release, checkpoint=file)
        return drawn(model, release, checkpoint=file)


def clustered(sampler: mixture.Sampler, channel: Any = None) -> Any:
    """Draws of a mixture of records that are known, or seen through a channel."""
    posterior = mixture.sample(
        jax.random.key(2),
        np.concatenate([POINTS - 3, POINTS + 3])[::4],
        channel,
        component=mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=3.0, scale=3.0),
        concentration=1.0,
        sampler=sampler,
        **SHORT,
    )
    return posterior.draws, posterior.info


def met(imputation: dpjax.base.Imputation) -> Any:
    """Meeting times of pairs."""
    kernel = coupling.coupled_gibbs(CATEGORICAL, TABLE, imputation)
    meetings = coupling.meeting_times(jax.random.key(3), kernel, num_pairs=6, max_steps=400)
    return np.asarray(meetings.times)


def published(build: Callable[[Any], Any], **options: Any) -> Any:
    """Positions of a private run whose noise is simulated."""
    target = private.target(
        lambda theta, record: -jnp.sum(jnp.square(record - theta)) / 2,
        lambda theta: -jnp.sum(jnp.square(theta)) / 2,
        jnp.asarray(VECTORS),
        jnp.zeros(2),
    )
    budget = private.Budget(epsilon=200.0, delta=1e-6, neighbours="replace-one")
    found = private.sample(
        jax.random.key(4), build(target), jnp.zeros((2, 2)), private.Ledger(budget), num_iterations=20, **options
    )
    return found.draws


VECTORS = np.random.default_rng(8).normal(size=(40, 2))
HAMILTONIAN = {
    "step_size": 0.02,
    "num_leapfrog": 3,
    "gradient_bound": 2.0,
    "ratio_bound": 2.0,
    "tau_g": 10.0,
    "tau_l": 10.0,
}
SUBSAMPLED = {"sampling_rate": 0.2, "gradient_bound": 2.0, "noise_multiplier": 6.0}

CALLS: dict[str, Callable[[], Any]] = {
    "IMwG": lambda: drawn(NORMAL, SUM, imputation=dpjax.imwg()),
    "IMwG, random scan": lambda: drawn(NORMAL, SUM, imputation=dpjax.imwg("random")),
    "IMwG in windows": lambda: drawn(NORMAL, SUM, imputation=dpjax.imwg(window=16)),
    "SOMA": lambda: drawn(NORMAL, SUM, imputation=dpjax.soma()),
    "SOMA, 8 attempts": lambda: drawn(NORMAL, SUM, imputation=dpjax.soma(8)),
    "SOMA, tuned": lambda: drawn(NORMAL, SUM, imputation=dpjax.soma("auto")),
    "pCN": lambda: drawn(NORMAL, SUM, imputation=dpjax.pcn(8, 0.5)),
    "pCN, tuned": lambda: drawn(NORMAL, SUM, imputation="auto"),
    "regression": lambda: drawn(REGRESSION, GRAM),
    "regression, centred": lambda: drawn(REGRESSION, GRAM, interweave=False),
    "regression, NUTS": lambda: drawn(REGRESSION, GRAM, parameter_kernel="nuts"),
    "regression, thinned": lambda: drawn(REGRESSION, GRAM, thin=3),
    "regression, records collected": lambda: drawn(REGRESSION, GRAM, collect=records_of),
    "unknown variance": lambda: drawn(FREE_NORMAL, SUM),
    "surrogate of many records": lambda: drawn(NORMAL, dpjax.Release([900.0], dpjax.Laplace(2.0), TOTAL, 2_000)),
    "started under the normal law": lambda: drawn(NORMAL, SUM, initial="large-sample"),
    "stopped when enough": lambda: drawn(NORMAL, SUM, num_samples=600, until=dpjax.until(ess=100)),
    "saved and continued": lambda: continued(NORMAL, SUM),
    "table": lambda: drawn(CATEGORICAL, TABLE),
    "table, given parameters": lambda: drawn(CATEGORICAL, TABLE, imputation=dpjax.counts(16, collapse=False)),
    "table, records": lambda: drawn(CATEGORICAL, TABLE, imputation=dpjax.imwg()),
    "table, known": lambda: drawn(CATEGORICAL, dpjax.Release([14.0, 41.0, 5.0], dpjax.Exact(), CELLS, N)),
    "table and total": lambda: drawn(CATEGORICAL, dpjax.joint(TABLE, known_total())),
    "table, censored": lambda: drawn(
        CATEGORICAL, dpjax.Release([14.0, 40.0, 0.0], dpjax.Censored(dpjax.Laplace(2.0), lower=0.0), CELLS, N)
    ),
    "naive Bayes": lambda: drawn(
        NAIVE_BAYES, dpjax.Release(np.full(8, 15.0), dpjax.Laplace(1.0), statistics.class_features(2, 2, 2), N)
    ),
    "responses": lambda: drawn(CATEGORICAL, RESPONSES, imputation=dpjax.imwg()),
    "local Normal": lambda: drawn(NORMAL, dpjax.LocalRelease(POINTS, dpjax.Laplace(0.5), "y"), imputation=dpjax.imwg()),
    "local counts": lambda: drawn(VISITS, NOISY_VISITS, imputation=dpjax.imwg()),
    "local counts, summed out": lambda: drawn(VISITS, NOISY_VISITS),
    "NumPyro": lambda: drawn(BENT, CROSSED),
    "unknown number": lambda: drawn(NORMAL, dpjax.Release([21.0], dpjax.Laplace(2.0), TOTAL, UNKNOWN)),
    "table of an unknown number": lambda: drawn(
        CATEGORICAL, dpjax.Release([14.0, 40.0, 5.0], dpjax.DiscreteLaplace(1.5), CELLS, UNKNOWN)
    ),
    "batch": lambda: batch([SUM, dpjax.Release([-8.0], dpjax.Laplace(2.0), TOTAL, N)]),
    "normal law": lambda: large(NORMAL, SUM),
    "sample_smc": lambda: (
        dpjax.sample_smc(jax.random.key(5), NORMAL, SUM, num_particles=16, num_islands=2, num_sweeps=1).draws
    ),
    "importance": lambda: dpjax.importance_sample(jax.random.key(6), NORMAL, SUM, 500).draws,
    "simulation-based calibration": lambda: (
        dpjax.sbc(jax.random.key(7), NORMAL, SUM, num_replicates=20, num_samples=8, thin=1, num_warmup=16).ranks
    ),
    "gibbs": lambda: stepped(REGRESSION, dpjax.gibbs(REGRESSION, GRAM), dpjax.data_augmentation.Position),
    "impute": lambda: stepped(NORMAL, dpjax.impute(NORMAL, SUM, {"mean": 0.5}), lambda parameters, records: records),
    "maximum likelihood": lambda: fitted(NORMAL, SUM),
    "maximum likelihood, table": lambda: fitted(CATEGORICAL, TABLE),
    "invariance test": lambda: invariant(NORMAL, SUM, unbiased=True),
    "invariance test, table": lambda: invariant(CATEGORICAL, TABLE),
    "completed": lambda: dpjax.sample(jax.random.key(1), NORMAL, SUM, **SHORT).completed(jax.random.key(2), 5).records,
    "completed, table": lambda: (
        dpjax.sample(jax.random.key(1), CATEGORICAL, TABLE, **SHORT).completed(jax.random.key(2), 5).counts
    ),
    "batch of an unknown number": lambda: batch(
        [dpjax.Release([value], dpjax.Laplace(2.0), TOTAL, UNKNOWN) for value in (21.0, -90.0)]
    ),
    "calibration, unknown number": lambda: (
        dpjax.sbc(
            jax.random.key(7),
            NORMAL,
            dpjax.Release([21.0], dpjax.Laplace(2.0), TOTAL, UNKNOWN),
            fit=models.normal(models.NormalPrior(0.0, 1.0), 2.0),
            num_replicates=20,
            num_samples=8,
            thin=1,
            num_warmup=16,
        ).ranks
    ),
    "prior predictive": lambda: dpjax.sample_prior_predictive(jax.random.key(8), NORMAL, SUM, num_samples=20),
    "predictive": lambda: dpjax.sample(jax.random.key(1), NORMAL, SUM, **SHORT).predict(jax.random.key(9)),
    "pairs by IMwG": lambda: met(dpjax.imwg()),
    "pairs by SOMA": lambda: met(dpjax.soma()),
    "pairs of counts": lambda: met(dpjax.counts(8)),
    "mixture": lambda: clustered(mixture.conditional(), dpjax.Laplace(0.5)),
    "mixture, several proposals": lambda: clustered(mixture.conditional(proposals=4), dpjax.Laplace(0.5)),
    "mixture, Neal 2": lambda: clustered(mixture.neal2()),
    "mixture, Neal 3": lambda: clustered(mixture.neal3()),
    "mixture, Neal 5": lambda: clustered(mixture.neal5(), dpjax.Laplace(0.5)),
    "mixture, Neal 8": lambda: clustered(mixture.neal8()),
    "DP-HMC": lambda: published(lambda target: private.dp_hmc(target, private.noise.jax, **HAMILTONIAN)),
    "DP penalty": lambda: published(
        lambda target: private.dp_penalty(target, private.noise.jax, proposal_scale=0.1, ratio_bound=2.0, tau=10.0)
    ),
    "DP-SGLD": lambda: published(
        lambda target: private.dp_sgld(target, private.noise.jax, step_size=1e-3, **SUBSAMPLED)
    ),
    "DP-SGNHT": lambda: published(
        lambda target: private.dp_sgnht(target, private.noise.jax, step_size=1e-3, diffusion=1.0, **SUBSAMPLED)
    ),
}


def records_of(state: dpjax.data_augmentation.GibbsState) -> Any:
    """The imputed records."""
    return state.latent.records


def known_total() -> dpjax.Release:
    """How many records are in the first cell, known."""
    return dpjax.Release([15.0], dpjax.Exact(), statistics.grouped("cell", [0, -1, -1]), N)


def batch(releases: list[dpjax.Release]) -> Any:
    """Draws for several releases."""
    return dpjax.sample_batch(jax.random.key(10), NORMAL, releases, **SHORT).draws


def stepped(model: dpjax.Model, algorithm: Any, starts_at: Callable[[Any, Any], Any]) -> Any:
    """The states of an algorithm after each of some steps, started at a draw from the model."""
    parameters = model.sample_prior(jax.random.key(12))
    state = algorithm.init(starts_at(parameters, model.sample_records(jax.random.key(13), parameters, N)))
    return jax.lax.scan(lambda state, key: (algorithm.step(key, state)[0],) * 2, state, jax.random.split(KEY, 5))[1]


def fitted(model: dpjax.Model, release: dpjax.Release) -> Any:
    """The estimate and its errors."""
    found = dpjax.maximum_likelihood(KEY, model, release, method="imputation", num_chains=8, num_steps=64, **QUIET)
    return found.estimate, found.standard_errors


def invariant(model: dpjax.Model, release: dpjax.Release, **options: Any) -> Any:
    """The ends of the chains of an invariance test."""
    posterior = dpjax.sample(jax.random.key(1), model, release, **SHORT | {"num_samples": 200})
    found = dpjax.invariance_test(KEY, posterior, num_sweeps=3, num_warmup=4, **QUIET, **options)
    return found.after, found.unbiased


def large(model: dpjax.Model, release: dpjax.Release) -> Any:
    """Draws under the normal law."""
    return dpjax.sample_clt(jax.random.key(11), model, release, **SHORT).draws


def digest(result: Any) -> str:
    """A hash of names, shapes, types and bits."""
    content = hashlib.sha256()
    for path, leaf in sorted(
        ((jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(result)),
        key=lambda pair: pair[0],
    ):
        array = np.asarray(leaf)
        content.update(f"{path} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return content.hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Write the hashes of the calls, and compare them."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bit_for_bit", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--against", type=Path, help="hashes of the code as it was")
    parser.add_argument("--only", nargs="*", choices=CALLS, help="some of the calls", metavar="CALL")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found = {}
    for name in options.only or CALLS:
        found[name] = digest(CALLS[name]())
        print(f"{found[name][:12]} {name}", file=sys.stderr, flush=True)
        options.file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    if options.against is None:
        return 0
    known = json.loads(options.against.read_text())
    differing = [name for name in found if known.get(name) != found[name]]
    print("\n".join(f"differs: {name}" for name in differing) or f"all {len(found)} are the same")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
