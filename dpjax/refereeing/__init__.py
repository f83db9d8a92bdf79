"""The referee: exact kernels started at draws tell whether these come from the posterior."""

from dpjax.refereeing.run import referee
from dpjax.refereeing.verdict import Verdict

__all__ = ["Verdict", "referee"]
