"""The models of formulas are programs of NumPyro, whose own code promotes ranks and types."""

from tests.adapters.numpyro.conftest import _ranks_and_types_may_differ

__all__ = ["_ranks_and_types_may_differ"]
