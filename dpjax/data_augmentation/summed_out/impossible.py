"""Which records the model cannot explain: what was released of them has no density at any parameters from the prior."""

import jax
import numpy as np

from dpjax.base import Array, Key, Model
from dpjax.data_augmentation.summed_out.contract import Likelihood
from dpjax.data_augmentation.summed_out.groups import GroupedTerms
from dpjax.data_augmentation.summed_out.likelihood import MarginalLikelihood
from dpjax.models.programs import jit_model
from dpjax.release import PrivateRelease

__all__ = ["impossible_in_words"]

NUM_DRAWS, SHOWN = 64, 4


def impossible_in_words(model: Model, likelihood: Likelihood | PrivateRelease) -> str:
    """The places of records that are impossible at all of some draws from the prior, for an error; else nothing.

    If records are imputed, it is not known of single ones.
    """
    if not isinstance(likelihood, MarginalLikelihood) or isinstance(likelihood.terms, GroupedTerms):
        return ""
    found = np.asarray(terms_at_draws.unoptimized(model, jax.random.key(0), likelihood))
    never = ~np.any(np.isfinite(found), axis=0)
    places = np.flatnonzero(never[np.asarray(likelihood.rows)])
    if not len(places):
        return ""
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    some = f"record{'s' * (len(places) > 1)} {', '.join(map(str, places[:SHOWN]))}{more}"
    return f", as what was released of {some} is impossible at all of {NUM_DRAWS} draws from the prior"


@jit_model
def terms_at_draws(model: Model, key: Key, likelihood: MarginalLikelihood) -> Array:
    """The log-densities [draw, row] of the rows at draws from the prior."""
    terms = likelihood.terms.build(likelihood.model)
    return jax.lax.map(lambda one: terms(model.sample_prior(one)), jax.random.split(key, NUM_DRAWS))
