"""Data augmentation as BlackJAX algorithms: of parameters and records, and of the records alone."""

from typing import Any

from dpjax._util.jit import in_full_precision
from dpjax._util.spelling import names_arguments, steps_from
from dpjax._util.validation import check_instance, fail
from dpjax.base import Imputation, ImputationInfo, Key, Latent, Model, Parameters, Records, SamplingAlgorithm
from dpjax.data_augmentation.parameters import KernelBuilder, ParameterKernel, Tuning, check_tuning
from dpjax.data_augmentation.plan import SweepPlan, check_tuned
from dpjax.data_augmentation.problem import augment, impute_by, with_noise
from dpjax.data_augmentation.sweep import GibbsInfo, build_kernel, prior_tuning
from dpjax.models.checks import check_fit
from dpjax.models.positions import check_parameters, check_position, check_start
from dpjax.models.simulation import GibbsState, Position, init_latent, init_state
from dpjax.release import PrivateRelease


@names_arguments
def gibbs(
    model: Model,
    release: PrivateRelease,
    imputation: Imputation | str | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    tuning: Tuning | None = None,
    plan: SweepPlan | None = None,
) -> SamplingAlgorithm:
    """A BlackJAX sampling algorithm that leaves p(parameters, records | release) invariant.

    Parameters
    ----------
    model
        The complete-data model.
    release
        What was released; one `Release` or `LocalRelease`.
    imputation
        ``imwg(...)``, ``soma(...)``, ``pcn(...)``, ``counts(...)``; one of these names as a text, such as ``"soma"``,
        for its defaults; or an `Imputation` of your own; IMwG by default.
    interweave
        Whether to add the non-centred step; by default wherever the model has a non-centred form.
    parameter_kernel
        In place of the model's own update, any BlackJAX kernel: ``"nuts"``, ``"hmc"``, ``"mala"``,
        ``"normal_random_walk"``, ``"slice_sampling"``, ``"coordinate_slice"`` or ``"elliptical_slice"``. A function
        ``log_density -> SamplingAlgorithm`` on whitened vectors is a kernel, too. `dpjax.parameter_kernel` makes one of
        these with its options and several steps per sweep. Models without an update have a default; see
        `default_kernel`.
    tuning
        The whitening and step size, such as `Posterior.tuning` of a short run. By default they are fitted to draws from
        the prior, under a fixed key: any tuning leaves the posterior invariant.
    plan
        In place of the three choices: `Posterior.plan`, the sweep that the warm-up of a run settled on. The refreshes
        between sweeps are those of `dpjax.sample` alone.

    Returns
    -------
    SamplingAlgorithm
        ``init(position, rng_key=None)`` takes a `Position`, or parameters alone with a key that draws the records;
        ``step(rng_key, state)`` makes one sweep.

    Raises
    ------
    TypeError, ValueError
        If the parts do not fit, a choice is made beside a plan, or one is left to a warm-up.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> algorithm = dpjax.gibbs(model, release)
    >>> state = algorithm.init(dpjax.data_augmentation.Position({"mean": 1.0}, {"y": jax.numpy.ones(10)}))
    >>> state.latent.records["y"].shape
    (10,)
    """
    choices = {"imputation": imputation, "interweave": interweave, "parameter_kernel": parameter_kernel}
    problem = augment(model, release, **(choices if plan is None else choices_of(plan, choices)))
    check_tuned(problem.plan.imputation, imputation)
    problem = problem if plan is None else with_noise(problem, plan.noise)
    model, release = problem.model, problem.release
    kernel = build_kernel(model, release, problem.plan)
    fixed = prior_tuning(model, release.n, problem.plan) if tuning is None else check_tuning(model, tuning)

    @names_arguments
    @in_full_precision
    def init(position: Position | Parameters, rng_key: Key | None = None) -> GibbsState:
        return init_state(release, check_position(model, release.n, position, rng_key))

    @steps_from("init", GibbsState)
    def step(rng_key: Key, state: GibbsState) -> tuple[GibbsState, GibbsInfo]:
        return kernel(rng_key, state, fixed)

    return SamplingAlgorithm(init, step)


def choices_of(plan: Any, beside: dict[str, Any]) -> dict[str, Any]:
    """The choices that a plan stands for; an error if others stand beside it."""
    check_instance("plan", plan, SweepPlan, "Pass the plan of a posterior, or leave it out.")
    for name, choice in beside.items():
        if choice is not None:
            remedy = f"Leave one of them out, or pass dataclasses.replace(plan, {name}=...)."
            fail(name, f"{choice!r} beside a plan", f"None, as the plan has {getattr(plan, name)!r}", remedy)
    return {name: getattr(plan, name) for name in beside}


@names_arguments
def impute(
    model: Model, release: PrivateRelease, parameters: Parameters, imputation: Imputation | str | None = None
) -> SamplingAlgorithm:
    """A BlackJAX sampling algorithm that leaves p(records | parameters, release) invariant.

    Parameters
    ----------
    model
        The complete-data model.
    release
        What was released.
    parameters
        The parameters, which stay as they are, on their natural scale.
    imputation
        ``imwg(...)``, ``soma(...)``, one of these names as a text, or an `Imputation` of your own; IMwG by default.

    Returns
    -------
    SamplingAlgorithm
        ``init(records, rng_key=None)`` takes records [n, ...], such as ``model.sample_records(key, parameters, n)``,
        and needs no key; ``step(rng_key, latent)`` makes one sweep.

    Raises
    ------
    TypeError, ValueError
        If the parts do not fit; see `dpjax.gibbs`.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> algorithm = dpjax.impute(model, release, {"mean": 1.0})
    >>> state = algorithm.init({"y": jax.numpy.ones(10)})
    >>> float(state.statistic[0])
    10.0
    """
    check_fit(model, release)
    problem = impute_by(model, release, imputation)
    check_tuned(problem.plan.imputation, imputation)
    known = check_parameters("parameters", model, parameters)
    model, release, kernel = problem.model, problem.release, problem.kernel

    @names_arguments
    @in_full_precision
    def init(records: Records, rng_key: Key | None = None) -> Latent:
        del rng_key
        return init_latent(release, check_start("records", model, release.n, known, records))

    @steps_from("init", Latent)
    @in_full_precision
    def step(rng_key: Key, latent: Latent) -> tuple[Latent, ImputationInfo]:
        return kernel(rng_key, latent, known)

    return SamplingAlgorithm(init, step)
