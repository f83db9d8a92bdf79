"""The choice to sum the records out, in place of imputing them."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, is_traced
from dpjax.base import ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters
from dpjax.data_augmentation.kernel_checks import builds_kernel
from dpjax.data_augmentation.parameters.centred import has_gradients
from dpjax.data_augmentation.summed_out.likelihood import MarginalLikelihood, sum_out, try_sum_out
from dpjax.data_augmentation.summed_out.within import fields_within
from dpjax.models.simulation import GibbsState, init_latent, parameter_shapes
from dpjax.release import PrivateRelease

__all__ = ["SummedOut", "preferred_sums", "summed_out", "summed_state"]


@dataclass(frozen=True)
class SummedOut:
    """Records are summed out: the parameters move alone; called with a model and a release, it draws the records.

    Parameters
    ----------
    records
        Whether records are drawn for each draw that is kept.

    Examples
    --------
    >>> from dpjax.data_augmentation.summed_out.imputation import SummedOut
    >>> import dpjax
    >>> dpjax.summed_out() == SummedOut()
    True
    """

    records: bool = False

    @builds_kernel
    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """Exact draws from p(records | parameters, release), but for what windows of whole numbers leave out."""
        likelihood = self.sum_out(model, release)

        def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
            del latent
            records = likelihood.sample_records(rng_key, parameters)
            return init_latent(release, records), drawn_exactly(release.n)

        return step

    def sum_out(self, model: Model, release: PrivateRelease) -> MarginalLikelihood:
        """The likelihood of the parameters alone, or an error if there is none, or a program is being traced."""
        if is_traced((model, release)):
            remedy = "Use dpjax.sample, or dpjax.imwg()."
            fail("imputation", "summed_out()", "one that imputes the records, as many releases run at once", remedy)
        return sum_out(model, release)


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


@names_arguments
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


def preferred_sums(model: Model, release: PrivateRelease) -> MarginalLikelihood | None:
    """The likelihood by which the records are summed out by default; None where they are imputed.

    They are summed out if they can be, and no exact update of the parameters is lost. Those that are known within
    intervals cannot be imputed.
    """
    shapes = jax.tree.leaves(parameter_shapes(model))
    if (
        (model.has("update") and not fields_within(model, release))
        or not shapes
        or not all(jnp.issubdtype(x.dtype, jnp.floating) for x in shapes)
    ):
        return None
    found = try_sum_out(model, release)
    return found if found is not None and (has_gradients(model) or sum(x.size for x in shapes) == 1) else None
