"""Flags of a pair are those of what was written."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.coupling.pairs import CoupledSweepState
from dpjax.coupling.sweeps import update_flags
from dpjax.data_augmentation.records.placed import Decision


@pytest.mark.parametrize("accepted", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("same_proposal", [False, True])
def test_flags_are_those_of_what_was_written(accepted: tuple[bool, bool], same_proposal: bool) -> None:
    """A flag that outlives its record makes pairs meet too soon, which few draws of short pairs tell."""
    states = CoupledSweepState(None, None, jnp.array([True, False, True]))
    one, other = (Decision(jnp.array(2), jnp.array(taken), jnp.zeros(())) for taken in accepted)
    flags = update_flags(states, one, other, jnp.array(same_proposal))
    expected = same_proposal if all(accepted) else not any(accepted)
    np.testing.assert_array_equal(flags, [True, False, expected])
