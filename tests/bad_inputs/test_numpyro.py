"""Programs of NumPyro, and arguments beside them, from which no model can be made."""

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax


def normal(n=5):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def with_covariates(x):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", len(x)):
        numpyro.sample("y", dist.Normal(slope * x, 1.0))


def fixed():
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", 5):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def nothing(n=5):
    return None


def no_plate(n=5):
    numpyro.sample("y", dist.Normal(numpyro.sample("mean", dist.Normal(0.0, 1.0)), 1.0))


def factored(n=5):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        y = numpyro.sample("y", dist.Normal(mean, 1.0))
    numpyro.factor("more", jnp.sum(y))


def learned(n=5):
    mean = numpyro.param("mean", 0.0)
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def observed(n=5):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0), obs=jnp.array(0.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def subsampled(n=5):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n, subsample_size=2):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def made(program=normal, records=("y",), **more):
    return lambda: dpjax.from_numpyro(program, records=records, **more)


CASES = {
    "no program": (made(program=None), "fn"),
    "a number for a program": (made(program=3), "fn"),
    "a law for a program": (made(program=dist.Normal(0.0, 1.0)), ""),
    "no records": (made(records=()), "records"),
    "records that are none": (made(records=None), "records"),
    "records that are a number": (made(records=3), "records"),
    "records that are the text of none": (made(records="z"), "records"),
    "records that are numbers": (made(records=(1, 2)), "records"),
    "a record twice": (made(records=("y", "y")), "records"),
    "an unknown record": (made(records=("z",)), "records"),
    "a parameter for a record": (made(records=("mean",)), ""),
    "n of zero": (made(n=0), "n"),
    "n of a fraction": (made(n=2.5), "n"),
    "n of text": (made(n="5"), "n"),
    "n beside a plate of its own": (made(program=fixed, n=7), "n"),
    "an unknown argument": (made(size=3), ""),
    "covariates left out": (made(program=with_covariates), ""),
    "a program of nothing": (made(program=nothing), ""),
    "records outside a plate": (made(program=no_plate), ""),
    "a factor of the records": (made(program=factored), ""),
    "a parameter to be optimised": (made(program=learned), ""),
    "a subsampled plate": (made(program=subsampled), ""),
    "covariates that are missing": (made(program=with_covariates, x=np.full(3, np.nan)), "x"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])
