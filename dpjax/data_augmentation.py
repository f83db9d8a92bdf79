"""Imputation of the records alone, at known parameters, for BlackJAX's loops."""

from dpjax.base import Imputation, ImputationInfo, Key, Latent, Model, Parameters, Records, SamplingAlgorithm
from dpjax.imputation.offers import init_latent
from dpjax.models.positions import check_parameters, check_start
from dpjax.release import LocalRelease, Release
from dpjax.sweep import make_plan


def impute(
    model: Model, release: Release | LocalRelease, parameters: Parameters, imputation: Imputation | None = None
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
        ``imwg(...)``, ``soma(...)`` or an `Imputation` of your own; IMwG by default.

    Returns
    -------
    SamplingAlgorithm
        ``init(records, rng_key=None)`` takes records [n, ...], such as ``model.sample_records(key, parameters, n)``,
        and needs no key; ``step(rng_key, latent)`` makes one sweep.

    Raises
    ------
    TypeError, ValueError
        If the parts do not fit; see `dpjax.gibbs`.
    """
    plan = make_plan(model, release, imputation)
    known = check_parameters("parameters", model, parameters)
    kernel = plan.imputation(model, release)

    def init(records: Records, rng_key: Key | None = None) -> Latent:
        del rng_key
        return init_latent(release, check_start("records", model, release.n, known, records))

    def step(rng_key: Key, latent: Latent) -> tuple[Latent, ImputationInfo]:
        return kernel(rng_key, latent, known)

    return SamplingAlgorithm(init, step)
