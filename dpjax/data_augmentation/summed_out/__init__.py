"""Records that are summed out: the likelihood of the parameters alone, for releases of values of single records."""

from dpjax.data_augmentation.summed_out.imputation import SummedOut, prefers_sums, summed_out, summed_state
from dpjax.data_augmentation.summed_out.likelihood import MarginalLikelihood, marginal_likelihood, sum_out, thin

__all__ = [
    "MarginalLikelihood",
    "SummedOut",
    "marginal_likelihood",
    "prefers_sums",
    "sum_out",
    "summed_out",
    "summed_state",
    "thin",
]
