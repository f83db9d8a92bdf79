"""The choice to sum the records out, in place of imputing them."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail, is_traced
from dpjax.base import ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters
from dpjax.data_augmentation.parameters.centred import has_gradients
from dpjax.data_augmentation.summed_out.likelihood import MarginalLikelihood, obstacle_to_sums, sum_out
from dpjax.data_augmentation.summed_out.terms import NotSummableError
from dpjax.models.simulation import GibbsState, init_latent, parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.microdata import as_microdata

__all__ = ["SummedOut", "can_sum_out", "prefers_sums", "summed_out", "summed_state"]


@dataclass(frozen=True)
class SummedOut:
    """Records are summed out: the parameters move alone; called with a model and a release, it draws the records.

    Parameters
    ----------
    records
        Whether records are drawn for each draw that is kept.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.summed_out() == SummedOut()
    True
    """

    records: bool = False

    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """Exact draws from p(records | parameters, release), but for what windows of whole numbers leave out."""
        if is_traced((model, release)):
            remedy = "Use dpjax.sample, or dpjax.imwg()."
            fail("imputation", "summed_out()", "one that imputes the records, as many releases run at once", remedy)
        likelihood = sum_out(model, release)

        def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
            del latent
            records = likelihood.sample_records(rng_key, parameters)
            return init_latent(release, records), drawn_exactly(release.n)

        return step


def summed_state(
    plan: Any, parameters: Parameters, likelihood: MarginalLikelihood, key: Key | None = None
) -> GibbsState:
    """The state at parameters: with records drawn given these, or without any if a plan does not ask for them."""
    if not plan.imputation.records:
        return GibbsState(parameters, Latent({}, jnp.zeros(0), jnp.zeros(())))
    records = likelihood.sample_records(jax.random.key(0) if key is None else key, parameters)
    return GibbsState(parameters, Latent(records, jnp.zeros(0), jnp.zeros(())))


def drawn_exactly(n: int) -> ImputationInfo:
    """The report of an exact draw of n records."""
    return ImputationInfo(jnp.ones(()), jnp.ones(n, int), jnp.array(0))


def summed_out() -> SummedOut:
    """Sum the records out in place of imputing them, for a release of values of single records.

    Given the parameters such records are independent. What is hidden of each is summed over its possible values, over
    a window of whole numbers, or in closed form; see `dpjax.marginal_likelihood`. The parameters alone are moved, by
    NUTS unless ``parameter_kernel`` says otherwise. `dpjax.sample` does so by default wherever it can, for models
    without an exact update of the parameters. In `dpjax.gibbs` and `dpjax.impute` it draws the records exactly given
    the parameters.

    Raises
    ------
    TypeError, ValueError
        If the records cannot be summed out: when a kernel is built, or `dpjax.sample` is called.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.summed_out()
    SummedOut(records=False)
    """
    return SummedOut()


def prefers_sums(model: Model, release: PrivateRelease) -> bool:
    """Whether the records are summed out by default: if they can be, and no exact update of the parameters is lost."""
    if model.update is not None or not parameter_shapes(model):
        return False
    leaves = jax.tree.leaves(parameter_shapes(model))
    real = all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    possible = real and can_sum_out(model, release)
    return possible and (has_gradients(model) or sum(x.size for x in leaves) == 1)


def can_sum_out(model: Model, release: PrivateRelease) -> bool:
    """Whether what is hidden of each record can be summed over."""
    return not obstacle_to_sums(model, release) and has_room(model, release)


def has_room(model: Model, release: PrivateRelease) -> bool:
    """Whether sums over windows as wide as the noise are not too long, and totals of groups are plain sums."""
    if model.count_field is None and as_microdata(release).summed is None:
        return True
    try:
        sum_out(model, release)
    except NotSummableError:
        return False
    return True
