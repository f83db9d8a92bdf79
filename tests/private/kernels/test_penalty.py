"""A proposal that does not move makes the same query as any other."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.private.fixed_point import Limbs
from dpjax.private.kernels.penalty import PenaltyTest, ProposedMove, exact
from tests.private.neighbours import linear

ONE, NOUGHT = jnp.ones((1,), jnp.float32), jnp.zeros((1,), jnp.float32)


def test_a_proposal_that_does_not_move_or_is_infinitely_far_makes_the_same_query() -> None:
    target, asked = linear(np.ones(5), chunk_size=5), []

    def release(total: Limbs, scale: float) -> jax.Array:
        asked.append(scale)
        return exact(ONE, total, scale)

    @jax.jit
    def difference(proposal: jax.Array) -> jax.Array:
        return PenaltyTest(2.0, 0.5).noisy_ratio(target, release, ProposedMove(NOUGHT, proposal)).difference

    found = [difference(proposal) for proposal in (NOUGHT, NOUGHT + jnp.inf, NOUGHT + 3e38)]
    np.testing.assert_array_equal(found, [0.0, -jnp.inf, jnp.nan])
    assert asked == [2**22]
