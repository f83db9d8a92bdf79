"""The choice to sum the records out, in place of imputing them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, is_traced
from dpjax.base import ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters
from dpjax.data_augmentation.kernel_checks import builds_kernel
from dpjax.data_augmentation.parameters.centred import has_gradients
from dpjax.data_augmentation.summed_out.contract import Likelihood
from dpjax.data_augmentation.summed_out.likelihood import sum_out, try_sum_out
from dpjax.data_augmentation.summed_out.within import fields_within
from dpjax.models.simulation import GibbsState, init_latent, parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.unknown_count import check_number_known
from dpjax.release.weights import weights_of

__all__ = ["SummedOut", "check_exact", "preferred_sums", "summed_out", "summed_state"]

FEW_RECORDS = 50
"""Largest number of records that are imputed by default if the parameters have an exact update given them."""

MOST_ROUNDING = 2**-6
"""Largest relative rounding, times the number of records, at which an exact update is given up for gradients."""


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

    is_exact: ClassVar[bool] = True

    def with_records(self, wanted: bool) -> Self:
        """The choice with records drawn, or not."""
        return replace(self, records=wanted)

    @builds_kernel
    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """Exact draws from p(records | parameters, release), but for what windows of whole numbers leave out."""
        likelihood = self.sum_out(model, release)

        def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
            del latent
            records = likelihood.sample_records(rng_key, parameters)
            return init_latent(release, records), drawn_exactly(release.n)

        return step

    def sum_out(self, model: Model, release: PrivateRelease) -> Likelihood:
        """The likelihood of the parameters alone, or an error if there is none, or a program is being traced."""
        check_number_known(release)
        if is_traced((model, release)):
            remedy = "Use dpjax.sample, or dpjax.imwg()."
            fail("imputation", "summed_out()", "one that imputes the records, as many releases run at once", remedy)
        return sum_out(model, release)


def check_exact(imputation: Any) -> None:
    """Raise if a choice stands for another likelihood than that of the records summed out, or imputed."""
    if isinstance(imputation, SummedOut) and not imputation.is_exact:
        remedy = "Use dpjax.sample(..., likelihood=dpjax.normal_sum()), or method='clt' of maximum_likelihood."
        fail("imputation", repr(imputation), "one that imputes records, or sums them out exactly", remedy)


def summed_state(plan: Any, parameters: Parameters, likelihood: Likelihood, key: Key | None = None) -> GibbsState:
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
    NUTS unless ``parameter_kernel`` says otherwise. `dpjax.sample` does so by default wherever it can, unless the model
    has an exact update of the parameters and there are at most 50 records. In `dpjax.gibbs` and `dpjax.impute` it draws
    the records exactly given the parameters.

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


def preferred_sums(model: Model, release: PrivateRelease) -> Likelihood | None:
    """The likelihood by which the records are summed out by default; None where they are imputed.

    They are summed out if they can be. An exact update of the parameters is kept if there are few records. It is kept
    if there are so many that the rounding of their log-density would change which moves are accepted. It is kept, too,
    without a non-centred form. Then nothing else says that the parameters move over all real numbers, as those of a
    Dirichlet prior do not if probabilities underflow. Numbers known within intervals, and weighted records, cannot be
    imputed.
    """
    if release.is_estimated or weights_of(model, release) is not None:
        return sum_out(model, release)
    if not release.fields:
        return None
    most = MOST_ROUNDING / float(jnp.finfo(jnp.result_type(float)).eps)
    many = FEW_RECORDS < release.n <= most and model.has("noncentred")
    if model.has("update") and not many and not fields_within(model, release):
        return None
    shapes = jax.tree.leaves(parameter_shapes(model))
    if not shapes or not all(jnp.issubdtype(x.dtype, jnp.floating) for x in shapes):
        return None
    found = try_sum_out(model, release)
    return found if found is not None and (has_gradients(model) or sum(x.size for x in shapes) == 1) else None
