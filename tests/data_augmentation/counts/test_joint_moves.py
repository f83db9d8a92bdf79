"""Records that change their cell follow the probabilities of the cells."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.data_augmentation.counts.joint_moves import move_records


def test_records_follow_their_probabilities() -> None:
    """Those that leave a cell go where probability was gained; of few records only long runs tell."""
    n, old, new = 10**6, np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.3, 0.4, 0.0, 0.3])
    counts = jnp.asarray(np.rint(n * old), int)
    with np.errstate(divide="ignore"):
        moved = np.asarray(jax.jit(move_records)(jax.random.key(1), counts, *map(jnp.asarray, map(np.log, (old, new)))))
    assert moved.sum() == n
    np.testing.assert_allclose(moved, n * new, atol=5 * np.sqrt(n / 4))
    assert moved[2] == 0
