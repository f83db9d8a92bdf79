"""Exact updates by successive conditioning: parameters from the prior, records, then an update must change no law.

Independent replicates draw θ from the prior and x from the records' law, and update θ to θ'. A correct update leaves
the joint law of (θ, x) as it was, so for every function g the differences g(θ', x) - g(θ, x) have mean 0.
"""

import jax
import numpy as np
import pytest
from scipy import stats

from tests.models.cases import CASES, UPDATED
from tests.models.replicates import NUM_REPLICATES, WRONG_UPDATES, updates

GATE = 5.0  # standard errors; some 200 functions pass together with probability 0.9999


def largest_score(differences: jax.Array) -> float:
    """The largest mean difference in its standard errors."""
    values = np.asarray(differences, np.float64)
    values = values[:, values.any(axis=0)]  # what an update leaves to the last bit has no error to be measured in
    return np.max(np.abs(values.mean(axis=0)) / (values.std(axis=0) / np.sqrt(len(values))))


@pytest.mark.x32
@pytest.mark.parametrize("name", UPDATED)
def test_update_leaves_the_joint_law(name: str) -> None:
    drawn = updates(name)
    assert largest_score(drawn.change) < GATE
    half = NUM_REPLICATES // 2  # draws of different replicates are independent, as the test requires
    for prior, updated in zip(jax.tree.leaves(drawn.before), jax.tree.leaves(drawn.after), strict=True):
        columns = prior.reshape(NUM_REPLICATES, -1).T, updated.reshape(NUM_REPLICATES, -1).T
        p_values = [stats.ks_2samp(one[:half], other[half:]).pvalue for one, other in zip(*columns, strict=True)]
        assert min(p_values) * len(p_values) > 1e-4


@pytest.mark.parametrize("name", WRONG_UPDATES)
def test_wrong_update_is_found(name: str) -> None:
    assert largest_score(updates(name).wrong_change) > 2 * GATE


@pytest.mark.parametrize("name", ["exponential, known", "beta, known"])
def test_models_without_parameters_have_an_empty_update(name: str) -> None:
    records = CASES[name].sample_records(jax.random.key(13), {}, 5)
    assert CASES[name].update(jax.random.key(14), {}, records) == {}
