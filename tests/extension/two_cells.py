"""A posterior over two cells and six records, small enough to enumerate: an oracle for every kind of release."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betaln, logsumexp

import dpjax
from dpjax import diagnostics, models, statistics

N = 6
PRIOR = (1.0, 2.0)
MODEL = models.categorical(concentration=np.array(PRIOR))
CELLS = statistics.cells("cell", 2)
MAX_ERRORS = 5.0


def enumerate_records(release: dpjax.release.PrivateRelease) -> tuple[float, float]:
    """log p(released value), and the posterior mean of the first cell's probability."""
    records = np.array(list(product([0, 1], repeat=N)))
    log_likelihood = jax.vmap(lambda cells: release.log_likelihood({"cell": cells}))(jnp.asarray(records))
    first = np.sum(records == 0, axis=1)
    log_joint = betaln(PRIOR[0] + first, PRIOR[1] + N - first) - betaln(*PRIOR) + np.asarray(log_likelihood, float)
    log_marginal = logsumexp(log_joint)
    return log_marginal, np.sum(np.exp(log_joint - log_marginal) * (PRIOR[0] + first)) / (sum(PRIOR) + N)


def agrees(posterior: dpjax.Posterior) -> bool:
    """Whether the chains' mean is the exact one, within five standard errors."""
    draws = posterior.draws["probabilities"][..., 0]
    return abs(draws.mean() - enumerate_records(posterior.release)[1]) < MAX_ERRORS * diagnostics.mcse_mean(draws)
