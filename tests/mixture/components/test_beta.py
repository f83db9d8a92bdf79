"""`mixture.sample` with Beta records behind wavelets: values that no record is likely to give."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import mixture

N = 12
CHANNEL = dpjax.HaarWavelet(0.8, 1)


def draw(values: np.ndarray) -> mixture.MixturePosterior:
    return mixture.sample(
        jax.random.key(3),
        values,
        CHANNEL,
        component=mixture.GammaShapes(2.0, 0.5),
        concentration=0.3,
        num_chains=2,
        num_warmup=0,
        num_samples=30,
        collect=("labels", "records"),
        progress=False,
    )


VALUES = {
    "ordinary": np.random.default_rng(1).normal(size=(N, 3)),
    "identical": np.zeros((N, 3)),
    "far outside": np.full((N, 3), [1e6, -1e6, 1e3]),
}


@pytest.mark.x32
@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
@pytest.mark.parametrize("name", VALUES)
def test_any_values_give_finite_draws(name: str) -> None:
    posterior = draw(VALUES[name])
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(posterior.mixing))
    records, labels = posterior.collected["records"], posterior.collected["labels"]
    assert 0 < records.min() <= records.max() < 1
    assert np.all(posterior.info["num_nonfinite"] == 0)
    np.testing.assert_array_equal(
        [[len(set(row)) for row in chain] for chain in labels], posterior.draws["num_clusters"]
    )
