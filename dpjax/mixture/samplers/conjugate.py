"""What samplers ask of a problem whose parameters they integrate out of the density of a cluster's values."""

from collections.abc import Callable

from dpjax.base import Array
from dpjax.mixture.base import Component, Conjugate
from dpjax.mixture.problem import Problem
from dpjax.mixture.samplers.marginal import refuse_binned
from dpjax.validation import fail

__all__ = ["Evidence", "check_conjugate", "evidence_of"]

Evidence = Callable[[Array, Array], Array]
"""``(counts, totals) -> [H]``, as `Conjugate.log_evidence`."""


def check_conjugate(name: str, problem: Problem) -> None:
    """Raise unless the parameters can be integrated out of the density of a cluster's released values."""
    refuse_binned(name, problem)
    if problem.channel is not None or not isinstance(problem.component, Conjugate):
        behind = "no channel" if problem.channel is None else type(problem.channel).__name__
        other = "neal8" if problem.channel is None or problem.tractable is not None else "neal5"
        remedy = (
            f"Use sampler=dpjax.mixture.{other}(); or, behind dpjax.Gaussian, "
            "component=dpjax.mixture.TruncatedNormalInverseGamma(...), which is another prior; or a component of the "
            "released values that has log_evidence, without a channel."
        )
        given = f"{name} with {behind} and {type(problem.component).__name__}"
        fail("sampler", given, "a base measure conjugate to the released values", remedy)


def evidence_of(component: Component) -> Evidence:
    """The ``log_evidence`` of a component that was checked to have one."""
    assert isinstance(component, Conjugate)
    return component.log_evidence
