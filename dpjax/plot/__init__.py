"""Pictures of what was released and what follows from it, by Matplotlib, which is imported when one is drawn.

Each function draws into the axes that it is given, or else into those of a new figure of pyplot, and returns them. A
picture of one result is a method of it: `Posterior.plot_forest`, `plot_table`, `plot_predictive` and `plot_acceptance`,
`SBCResult.plot`, `InvarianceTestResult.plot`, and those of `mixture.MixturePosterior`. Traces, ranks and pairs of
parameters are ArviZ's: ``arviz.plot_trace(posterior.to_arviz())``.
"""

from dpjax.plot.intervals import forest
from dpjax.plot.meetings import survival, total_variation
from dpjax.plot.private import budget

__all__ = ["budget", "forest", "survival", "total_variation"]
