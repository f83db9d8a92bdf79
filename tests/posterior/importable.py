"""A model written in functions that can be imported, as they are where a pickle is read."""

import numpyro
from numpyro import distributions as dist


def normal_model(n):
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def first_field(record):
    return record["y"][None]
