"""Short steps several to a body: the same steps."""

import jax
import numpy as np
import pytest

from dpjax.numerics.loops import UNROLLED, scan_short


@pytest.mark.parametrize("length", [1, UNROLLED, 2 * UNROLLED + 1])
def test_steps_on_an_accelerator_are_those_on_a_cpu(length, monkeypatch):
    """A body that is cut off, or whole: each step has its own random number, and what it returns is in its place."""
    keys = jax.random.split(jax.random.key(0), length)

    def run(platform: str):
        monkeypatch.setattr(jax, "default_backend", lambda: platform)
        step = lambda total, key: (total * 0.5 + jax.random.normal(key), total)  # noqa: E731
        traced = jax.jit(lambda: scan_short(step, 1.0, keys)).trace()
        (scan,) = [one for one in traced.jaxpr.jaxpr.eqns if one.primitive.name == "scan"]
        return scan.params["unroll"], *traced.lower().compile()()

    one, several = run("cpu"), run("gpu")
    assert (one[0], several[0]) == (1, UNROLLED)
    np.testing.assert_allclose(several[1], one[1], rtol=1e-6)
    np.testing.assert_allclose(several[2], one[2], rtol=1e-6)
