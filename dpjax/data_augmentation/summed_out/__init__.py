"""Records that are summed out: the likelihood of the parameters alone, for releases of values of single records."""

from dpjax.data_augmentation.summed_out.contract import Likelihood, OwnLikelihood
from dpjax.data_augmentation.summed_out.imputation import (
    SummedOut,
    check_exact,
    preferred_sums,
    summed_out,
    summed_state,
)
from dpjax.data_augmentation.summed_out.likelihood import (
    MarginalLikelihood,
    marginal_likelihood,
    sum_out,
    sum_out_each,
    thin,
    try_sum_out,
)

__all__ = [
    "Likelihood",
    "MarginalLikelihood",
    "OwnLikelihood",
    "SummedOut",
    "check_exact",
    "marginal_likelihood",
    "preferred_sums",
    "sum_out",
    "sum_out_each",
    "summed_out",
    "summed_state",
    "thin",
    "try_sum_out",
]
