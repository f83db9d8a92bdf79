"""Survival on the Titanic: every record is randomized on its own before it is collected."""

from math import log

import jax
import jax.numpy as jnp
import numpy as np
from numpy.random import Generator

import dpjax
from dpjax.base import Key
from dpjax.demo.comparison import Answer, Comparison, announce, draw_tables

# Men who died and survived, women who died and survived: Titanic of R's `datasets`, summed over class and age, from
# Dawson (1995), The "unusual episode" data revisited, Journal of Statistics Education 3(3).
COUNTS = (1364, 367, 126, 344)
TRUTHFUL = 0.5


def compare(key: Key, random: Generator) -> Comparison:
    """Randomize the sex and survival of each person, and infer the survival probabilities of women and men."""
    counts = jnp.asarray(COUNTS)
    keep = TRUTHFUL + (1 - TRUTHFUL) / len(COUNTS)
    channel = dpjax.RandomizedResponse(keep=keep, num_categories=len(COUNTS))
    epsilon = log(keep / (1 - keep) * (len(COUNTS) - 1))
    n = sum(COUNTS)
    announce(
        "Survival on the Titanic, 1912",
        released=f"one answer from each of {n:,} persons: sex and fate, as one of four cells",
        mechanism=f"randomized response: the truth with probability {TRUTHFUL}, else a cell at random",
        promise=f"{epsilon:.3g}-local differential privacy of each person",
    )
    noise_key, chain_key = jax.random.split(key)
    cells = jnp.repeat(jnp.arange(len(COUNTS)), counts, total_repeat_length=n)
    answers = jax.vmap(channel.sample)(jax.random.split(noise_key, n), cells)
    release = dpjax.LocalRelease(answers, channel)
    model = dpjax.models.categorical(jnp.ones(len(COUNTS)), shape=(2, 2))
    posterior = dpjax.sample(chain_key, model, release)
    answered = jnp.bincount(answers, length=len(COUNTS))
    return Comparison(
        title="Titanic, 2,201 answers",
        promise=f"randomized response, {epsilon:.2g}-local DP",
        measure="probability of survival",
        non_private=survival(draw_tables(random, counts)),
        naive=survival(draw_tables(random, answered)),
        dpjax=survival(posterior.draws["probabilities"]),
    )


def survival(probabilities: np.ndarray) -> Answer:
    """The share of survivors among women and men, from draws of cell probabilities [..., 4]."""
    men_died, men_survived, women_died, women_survived = np.moveaxis(probabilities, -1, 0)
    return {
        "women": women_survived / (women_died + women_survived),
        "men": men_survived / (men_died + men_survived),
    }
