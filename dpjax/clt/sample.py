"""From a model and a release of many records to draws from the posterior with the sum taken to be Normal."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax._util.host import on_host
from dpjax._util.jit import jit_unoptimized
from dpjax._util.spelling import names_arguments
from dpjax._util.threads import one_blas_thread
from dpjax._util.validation import name_of
from dpjax.base import Key, Model
from dpjax.clt.accuracy import check_errors, choose_draws, measure_errors, measure_skewness, warn_of_skewness
from dpjax.clt.density import simulate_variance
from dpjax.clt.inputs import check_inputs, default_points
from dpjax.clt.moments import Source, is_small, make_points
from dpjax.clt.predictive import predict_values
from dpjax.clt.run import CltDraw, CLTRun, make_schedule
from dpjax.clt.starts import check_starts, find_starts
from dpjax.mechanisms.smoothed import smoothed
from dpjax.posterior.posterior import Posterior
from dpjax.release import Release
from dpjax.runtime.devices import Devices, choose_mesh
from dpjax.runtime.fingerprint import identify_keys
from dpjax.runtime.progress import Progress, ShowProgress
from dpjax.runtime.run import Status, at_work, is_interrupted, looking_for_starts, run_to_end

__all__ = ["Drawn", "Size", "draw_chains"]

REFINEMENT = 2
"""How much finer the rule is that the quadrature is compared with."""


@names_arguments
def sample_clt(
    key: Key,
    model: Model,
    release: Release,
    *,
    num_chains: int = 4,
    num_warmup: int = 500,
    num_samples: int = 1_000,
    num_points: int | None = None,
    progress: ShowProgress = True,
    devices: Devices = None,
) -> Posterior:
    """Draw from p(parameters | release) with the sum taken to be Normal: approximate, at a cost free of n.

    By the central limit theorem the sum of n contributions of mean μ(θ) and covariance Σ(θ) is near N(n μ, n Σ), so
    p(s | θ) ≈ ∫ N(S; n μ, n Σ) η(s | S) dS (Bernstein and Sheldon 2018, 2019). It is closed for Gaussian noise; Laplace
    noise is Normal noise with latent variances, and other noise is latent itself. The parameters and these are moved by
    BlackJAX's NUTS with window adaptation, from modes that are climbed to from the prior.

    Parameters
    ----------
    key
        One typed key; equal keys give equal draws.
    model
        What is believed about the records. The moments of what a record adds to the sum come from
        `Model.statistic_moments` if the model has it. Otherwise they come from all possible records (`Model.support`),
        or from the whole numbers up to `num_points` of a count. The last way is quadrature over the Normal scores of
        the non-centred form; discrete fields among continuous ones then take all their levels at each point
        (`Model.mixed`). Records that are not identically distributed, such as those with known covariates, have unequal
        moments: that costs a pass over them.
    release
        One noisy sum, such as `dpjax.joint` makes of several. Whole noise is taken for real noise of the same variance,
        as is the sum. The number of records may be unknown, ``n=dpjax.UnknownCount(prior)``, if they are identically
        distributed: it is integrated over, at least 1, and drawn.
    num_chains
        Chains, run side by side.
    num_warmup
        Steps of each chain that are thrown away, while step size and mass matrix are adapted.
    num_samples
        Draws kept of each chain.
    num_points
        Points of the quadrature: a grid of about so many points up to three dimensions of noise, scrambled Sobol points
        beyond, fixed by the key. By default 1,024, or 216 if the model knows the mean and only the covariance is left.
        For a count it is how many whole numbers from 0 on are summed over, beyond which records should have no
        probability. Its error at draws of the posterior is measured against a finer rule.
    progress
        What is shown of the run; see `dpjax.sample`.
    devices
        What the chains are spread over; see `dpjax.sample`.

    Returns
    -------
    Posterior
        With ``approximate=True``, and no `final_states`, `tuning` and `plan`. An unknown number of records is in
        ``draws["num_records"]``. ``info`` has the trajectories' ``"acceptance_rate"``, ``"num_divergent"`` and
        ``"num_integration_steps"``, each [chain, draw]. ``"quadrature_error"`` [2] has the errors of the mean, in
        standard deviations of the value, and of its variance, relative. ``"skewness"`` [d] is that of the sum with its
        noise, which is 0 for a Normal sum.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable, or there is no such approximation (before compilation). If the value has a part
        without noise that does not vary. If no start of positive density is found. If the quadrature moves the mean of
        the sum by more than a tenth of a standard deviation, or its variance by more than a tenth. It does so if counts
        lie beyond the points.
    KeyboardInterrupt
        If the run is interrupted before its first draw; later, the draws made are returned with a warning.

    Notes
    -----
    The approximation is off by the skewness γ of the sum, of order 1 / √n. About n = 10³ records are many if each is
    clamped to a few standard deviations. Rare categories or long tails take more. It is measured by records drawn at
    draws of the posterior. Above 0.45, as for a count below five, a warning names the coordinate. Standard deviations
    are then a tenth too large (they grow with γ² / 2). `dpjax.sample` is exact.

    On processors draws do not depend on the number of devices while each has two chains at least. An accelerator rounds
    otherwise with another number of chains, and the adaptation of trajectories enlarges that: draws on other devices
    then are others from the same distribution.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> run = {"num_chains": 2, "num_warmup": 50, "num_samples": 50, "progress": False}
    >>> posterior = dpjax.sample_clt(jax.random.key(1), model, release, **run)
    >>> posterior.draws["mean"].shape
    (2, 50)
    """
    with Progress(progress) as bar, on_host():
        source = check_inputs(key, model, release, (num_chains, num_warmup, num_samples), num_points, progress)
        size = Size(num_chains, num_warmup, num_samples, num_points or default_points(source))
        drawn = draw_chains(key, model, release, source, size, bar, choose_mesh(devices, num_chains))
    interrupted = is_interrupted("sample_clt", drawn.run, drawn.status, None)
    return report(drawn, release, interrupted)


class Drawn(NamedTuple):
    """A run and what it has drawn.

    Attributes
    ----------
    run
        What stays as it is.
    status
        How far it has come.
    finer
        The rule that its quadrature is compared with.
    num_points
        Those of its own.
    key
        For a look at the skewness of the sum.
    """

    run: CLTRun
    status: Status
    finer: Any
    num_points: int
    key: Key

    @property
    def draws(self) -> CltDraw:
        """All draws made [chain, draw, ...]."""
        made: CltDraw = jax.tree.map(lambda leaf: leaf[:, : self.status.filled], self.status.draws)
        return made


def report(drawn: Drawn, release: Release, interrupted: bool) -> Posterior:
    """The posterior of the draws made, unless the quadrature was too coarse for them."""
    run, draws, num_points = drawn.run, drawn.draws, drawn.num_points
    some = choose_draws(draws.parameters)
    info = {name: np.asarray(leaf) for name, leaf in draws.info.items()}
    with one_blas_thread():
        if not run.source.is_exact:
            errors = measure_errors(run.model, run.release, run.source, run.rule, drawn.finer, run.simulated, some)
            check_errors(errors, num_points, name_of(release.statistic))
            info["quadrature_error"] = np.asarray(errors)
        info["skewness"] = measure_skewness(drawn.key, run.model, run.release, run.simulated, some)
    warn_of_skewness(info["skewness"])
    return Posterior(
        draws={**draws.parameters, **draws.derived},
        info=info,
        collected=None,
        interrupted=interrupted,
        model=run.model,
        release=release,
        final_states=None,
        tuning=None,
        plan=None,
        approximate=True,
        predictor=predict_values,
        keys=identify_keys(run.chain_keys),
        settings={"num_warmup": run.schedule[-1].start, "num_points": num_points},
    )


class Size(NamedTuple):
    """The numbers of chains, steps of warm-up, draws kept of each chain, and points of quadrature."""

    num_chains: int
    num_warmup: int
    num_samples: int
    num_points: int


class CltKeys(NamedTuple):
    """The parts of the one key of a run; `chains` has one key for each chain [chain]."""

    rules: Key
    noise: Key
    starts: tuple[Key, Key, Key]
    chains: Key
    skewness: Key


@partial(jit_unoptimized, static_argnames=("num_chains",))
def split_key(key: Key, num_chains: int) -> CltKeys:
    """The keys of a run; chain i has ``fold_in(key, i)`` of one of them."""
    rules, noise, prior, candidates, spread, chains, skewness = jax.random.split(key, 7)
    by_chain = jax.vmap(partial(jax.random.fold_in, chains))(jnp.arange(num_chains))
    return CltKeys(rules, noise, (prior, candidates, spread), by_chain, skewness)


def draw_chains(
    key: Key,
    model: Model,
    release: Release,
    source: Source,
    size: Size,
    bar: Progress,
    mesh: Mesh | None,
) -> Drawn:
    """The chains, with no look at how good the approximation is."""
    release = release.with_mechanism(smoothed(release.mechanism))
    keys = split_key(key, size.num_chains)
    rules = [make_points(keys.rules, model, source, size.num_points, refinement) for refinement in (1, REFINEMENT)]
    simulated = simulate_variance(keys.noise, release)
    given = (keys.starts, model, release, source, rules[0], simulated, size.num_chains)
    shapes = find_starts.eval_shape(*given)
    run = CLTRun(
        model=model,
        release=release,
        source=source,
        rule=rules[0],
        simulated=simulated,
        tuning=shapes.tuning,
        places=shapes.places,
        chain_keys=keys.chains,
        schedule=make_schedule(size.num_warmup, size.num_samples),
        mesh=mesh,
    )
    with at_work(None), looking_for_starts(run):
        search = find_starts.unoptimized if is_small(model, release, source, rules[0]) else find_starts
        starts = search(*given)
        check_starts(starts, release)
        run = replace(run, tuning=starts.tuning, places=starts.places)
        status = run.open()
    with at_work(None):
        return Drawn(run, run_to_end(run, status, None, bar), rules[1], size.num_points, keys.skewness)
