"""Coupled chains: pairs that meet, and what their meeting times say about convergence.

A *coupling* of two distributions is a joint distribution with these marginals, and *maximal* if its two values are
equal as often as the total variation distance allows. A *pair* is two chains of one Markov kernel, coupled so that they
meet. The first is a *lag* of L steps ahead of the second, X_t against Y_{t−L}; their *meeting time* τ is the first t ≥
L at which the two are equal. From then on they stay equal.
"""

from dpjax.coupling import theory
from dpjax.coupling.couplings import categorical, common_uniform, maximal, reflection_maximal
from dpjax.coupling.distances import Distance, mean_wasserstein, median_width, squared_mmd, wasserstein
from dpjax.coupling.exchangeable import coupled_exchangeable
from dpjax.coupling.gibbs import GibbsPair, coupled_gibbs
from dpjax.coupling.meetings import Meetings, Rate, convergence_rate, meeting_times, suggest_k_m, total_variation_bounds
from dpjax.coupling.pairs import CoupledKernel
from dpjax.coupling.unbiased import Estimate, UnbiasedEstimates, unbiased_estimates

__all__ = [
    "CoupledKernel",
    "Distance",
    "Estimate",
    "GibbsPair",
    "Meetings",
    "Rate",
    "UnbiasedEstimates",
    "categorical",
    "common_uniform",
    "convergence_rate",
    "coupled_exchangeable",
    "coupled_gibbs",
    "maximal",
    "mean_wasserstein",
    "median_width",
    "meeting_times",
    "reflection_maximal",
    "squared_mmd",
    "suggest_k_m",
    "theory",
    "total_variation_bounds",
    "unbiased_estimates",
    "wasserstein",
]
