"""Figures of releases and posteriors, by Matplotlib, which is imported when one is drawn.

Each function draws into the given axes, or those of a new pyplot figure, and returns them. Figures of one result are
its methods: `Posterior.plot_forest`, `plot_table`, `plot_predictive` and `plot_acceptance`, `SBCResult.plot`,
`InvarianceTestResult.plot`, and those of `mixture.MixturePosterior`. For traces, ranks and pairs of parameters use
ArviZ: ``arviz.plot_trace(posterior.to_arviz())``.
"""

from dpjax.plot.intervals import forest
from dpjax.plot.meetings import survival, total_variation
from dpjax.plot.private import budget

__all__ = ["budget", "forest", "survival", "total_variation"]
