"""A model whose non-centred form goes through a distribution function that reaches 1 within the support."""

import jax
import jax.numpy as jnp

import dpjax
from dpjax import models, statistics
from dpjax.base import NonCentred
from dpjax.data_augmentation.parameters import Tuning

CUT = 1.5
"""From this height on the distribution function is 1, as it is from 5.4 deviations on in float32."""


def noise(key: jax.Array, parameters: dict, records: dict) -> jax.Array:
    del key
    height = records["y"] - parameters["location"]
    return jnp.where(height > CUT, 1.0, jax.scipy.special.ndtr(height))


def records_at(parameters: dict, noise: jax.Array) -> dict:
    return {"y": parameters["location"] + jax.scipy.special.ndtri(noise)}


def rename(parameters: dict) -> dict:
    return {"location": parameters["mean"]}


def back(parameters: dict) -> dict:
    return {"mean": parameters["location"]}


NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
MODEL = dpjax.Model(
    sample_prior=lambda key: rename(NORMAL.sample_prior(key)),
    log_prior=lambda parameters: NORMAL.log_prior(back(parameters)),
    sample_records=lambda key, parameters, n: NORMAL.sample_records(key, back(parameters), n),
    log_density=lambda parameters, records: NORMAL.log_density(back(parameters), records),
    noncentred=NonCentred(noise, records_at),
)
RELEASE = dpjax.Release([3.0], dpjax.Laplace(1.0), statistics.total("y", -10.0, 10.0), 3)
TUNING = Tuning(jnp.zeros(1), jnp.eye(1), jnp.ones(()))
