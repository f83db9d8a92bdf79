"""Draws from the posterior with the sum taken to be Normal."""

import os

from dpjax._util.spelling import names_arguments
from dpjax.base import Key, Model, Parameters
from dpjax.clt.likelihood import normal_sum
from dpjax.data_augmentation.parameters import KernelBuilder, ParameterKernel
from dpjax.mcmc.sample import sample
from dpjax.mcmc.until import Until
from dpjax.posterior.posterior import Posterior
from dpjax.release import Release
from dpjax.runtime.devices import Devices
from dpjax.runtime.progress import ShowProgress

__all__ = ["sample_clt"]


@names_arguments
def sample_clt(
    key: Key,
    model: Model,
    release: Release,
    *,
    num_chains: int = 4,
    num_warmup: int = 500,
    num_samples: int = 1_000,
    thin: int = 1,
    num_points: int | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    initial: Parameters | None = None,
    progress: ShowProgress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    until: Until | None = None,
    devices: Devices = None,
) -> Posterior:
    """Draw from p(parameters | release) with the sum taken to be Normal: approximate, at a cost free of n.

    By the central limit theorem the sum of n contributions of mean μ(θ) and covariance Σ(θ) is near N(n μ, n Σ), so
    p(s | θ) ≈ ∫ N(S; n μ, n Σ) η(s | S) dS (Bernstein and Sheldon 2018, 2019). It is closed for Gaussian noise; Laplace
    noise is Normal noise with latent variances, and other noise is latent itself. The parameters and these are moved by
    NUTS, from modes that are climbed to from the prior. It is `dpjax.sample` with ``likelihood=dpjax.normal_sum()``.

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
    thin
        How many steps they are apart.
    num_points
        Points of the quadrature: a grid of about so many points up to three dimensions of noise, scrambled Sobol points
        beyond, the same for each key. By default 1,024, or 216 if the model knows the mean and only the covariance is
        left. For a count it is how many whole numbers from 0 on are summed over, beyond which records should have no
        probability. Its error at draws of the posterior is measured against a finer rule.
    parameter_kernel
        How the parameters move; see `dpjax.gibbs`.
    initial
        Parameters [chain, ...] to start from.
    progress
        What is shown of the run; see `dpjax.sample`.
    checkpoint
        A file; see `dpjax.sample`.
    until
        When to stop before `num_samples` draws; see `dpjax.sample`.
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
    return sample(
        key,
        model,
        release,
        likelihood=normal_sum(num_points),
        num_chains=num_chains,
        num_warmup=num_warmup,
        num_samples=num_samples,
        thin=thin,
        parameter_kernel=parameter_kernel,
        initial=initial,
        progress=progress,
        checkpoint=checkpoint,
        until=until,
        devices=devices,
    )
