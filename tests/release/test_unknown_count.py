"""A prior in place of the number of records: accepted by a release, written and read; an error elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import coupling, mixture, models, statistics

MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
PRIORS = (models.UniformCount(20, 45), models.PoissonCount(30.5), models.NegativeBinomialCount(40.0, 2.5))
STATISTIC = statistics.total("y", -2.0, 2.0)


@dataclass(frozen=True)
class Two:
    """A law of a user's own: 3 or 4, equally likely."""

    def log_probability(self, n: jax.Array) -> jax.Array:
        return jnp.where((n == 3) | (n == 4), jnp.log(0.5), -jnp.inf)

    def sample(self, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, (), 3, 5)

    @property
    def bounds(self) -> tuple[int, int | None]:
        return 3, 4


def release_of(prior: object = PRIORS[0]) -> dpjax.Release:
    return dpjax.Release([1.0], dpjax.Laplace(1.0), STATISTIC, n=dpjax.UnknownCount(prior))


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_json_round_trip(prior: object) -> None:
    release = release_of(prior)
    again = dpjax.from_json(release.to_json())
    assert again.n == release.n == dpjax.UnknownCount(prior)
    assert jax.tree.structure(again) == jax.tree.structure(release)


def test_the_text_names_the_prior() -> None:
    text = release_of(PRIORS[1]).to_json()
    assert '"n": {\n  "name": "poisson_count",\n  "mean": 30.5\n }' in text
    wrong = {
        '"binomial_count"': "n name: given 'binomial_count'",
        '"uniform_count"': "mean: .* UniformCount's arguments",
    }
    for entry, message in wrong.items():
        with pytest.raises((TypeError, ValueError), match=message):
            dpjax.from_json(text.replace('"poisson_count"', entry))
    with pytest.raises(TypeError, match=r"n\.prior: given Two; expected one of .*store its numbers yourself"):
        release_of(Two()).to_json()


def test_programs_are_found_again() -> None:
    traces = 0

    @jax.jit
    def density(release: dpjax.Release) -> jax.Array:
        nonlocal traces
        traces += 1
        return release.log_density(jnp.zeros(1))

    for value in (1.0, 2.0):
        density(dpjax.Release([value], dpjax.Laplace(value), STATISTIC, dpjax.UnknownCount(models.PoissonCount(30))))
    assert traces == 1
    density(release_of())
    assert traces == 2


def test_numbers_of_priors_are_plain() -> None:
    assert models.PoissonCount(jnp.array(30.0)) == models.PoissonCount(np.float64(30)) == models.PoissonCount(30)
    assert models.UniformCount(np.int64(3), 4) == models.UniformCount(3, 4)
    assert jax.vmap(lambda mean: models.PoissonCount(mean).log_probability(3))(jnp.array([1.0, 2.0])).shape == (2,)


def test_releases_of_any_number_are_drawn() -> None:
    records = {"y": jnp.ones(7)}
    drawn = release_of().sample(jax.random.key(0), records)
    assert drawn.n == release_of().n
    assert drawn.value.shape == (1,)
    assert np.isfinite(drawn.log_likelihood(records))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: models.UniformCount(3, 2), r"^high: given 2; expected a whole number from low = 3"),
        (lambda: models.UniformCount(-1, 2), r"^low: given -1"),
        (lambda: models.UniformCount(1.5, 2), r"^low: given 1\.5 of type float"),
        (lambda: models.UniformCount(0, 2**31 - 1), r"^high: given 2147483647"),
        (lambda: models.PoissonCount(0.0), r"^mean: given 0\.0; expected a number above 0 and up to 2\^30"),
        (lambda: models.PoissonCount([1.0, 2.0]), r"^mean: given shape \[2\]; expected one number"),
        (lambda: models.PoissonCount(2e9), r"^mean: given 2000000000\.0"),
        (lambda: models.NegativeBinomialCount(3.0, -1.0), r"^size: given -1\.0"),
        (lambda: dpjax.UnknownCount(models.PoissonCount), r"^prior: given PoissonCount; expected a distribution"),
        (lambda: dpjax.UnknownCount(30), r"^prior: given 30; expected a distribution"),
        (
            lambda: dpjax.UnknownCount(models.NormalPrior(30.0, 1.0)),
            r"^prior: given NormalPrior; expected a distribution",
        ),
        (lambda: dpjax.Release(1.0, dpjax.Laplace(1.0), STATISTIC, PRIORS[0]), r"^n: .*n=dpjax\.UnknownCount\(prior\)"),
        (lambda: dpjax.Release(1.0, dpjax.Laplace(1.0), STATISTIC, 0), r"^n: given 0; .*dpjax\.UnknownCount\(prior\)"),
    ],
)
def test_what_is_no_prior_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()


def test_a_prior_of_broken_parts_is_refused() -> None:
    class Reversed(Two):
        bounds = (4, 3)

    class Summed(Two):
        def log_probability(self, n: jax.Array) -> jax.Array:
            return jnp.sum(n)

    @dataclass(frozen=True)
    class Listed(Two):
        numbers: jax.Array

    with pytest.raises(ValueError, match=r"^prior\.bounds: given \(4, 3\)"):
        dpjax.UnknownCount(Reversed())
    with pytest.raises(ValueError, match=r"^prior: given log_probability of shape \(\) for 3 numbers"):
        dpjax.UnknownCount(Summed())
    with pytest.raises(TypeError, match=r"^prior: given Listed; expected a hashable distribution"):
        dpjax.UnknownCount(Listed(jnp.ones(2)))


NEEDS_A_NUMBER: dict[str, Callable[[dpjax.Release], object]] = {
    "imwg": lambda release: dpjax.imwg()(MODEL, release),
    "soma": lambda release: dpjax.gibbs(MODEL, release, dpjax.soma()),
    "pcn": lambda release: dpjax.sample(jax.random.key(0), MODEL, release, imputation=dpjax.pcn()),
    "sample_smc": lambda release: dpjax.sample_smc(jax.random.key(0), MODEL, release, imputation=dpjax.soma()),
    "sbc": lambda release: dpjax.sbc(jax.random.key(0), MODEL, release, imputation=dpjax.soma()),
    "coupling": lambda release: coupling.coupled_gibbs(MODEL, release),
}


@pytest.mark.parametrize("name", NEEDS_A_NUMBER)
def test_places_that_need_a_number_refuse(name: str) -> None:
    with pytest.raises(ValueError, match=r"^release\.n: given UnknownCount\(.*; expected a known number of records"):
        NEEDS_A_NUMBER[name](release_of())


def test_mixtures_refuse() -> None:
    histogram = statistics.histogram("y", np.linspace(0, 1, 4))
    release = dpjax.Release(np.ones(3), dpjax.Laplace(1.0), histogram, n=dpjax.UnknownCount(PRIORS[0]))
    with pytest.raises(ValueError, match=r"^release\.n: given UnknownCount"):
        mixture.binned.bin_release(release)
