"""What users of other libraries write at first: names for imputations, a promise for a scale, one field for a list."""

import jax
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax import private
from dpjax.data_augmentation.problem import choose_imputation
from dpjax.mechanisms.promises import ProtectedSums

MODEL = dpjax.models.categorical(shape=(2, 2), fields=["sex", "admitted"])
TABLE = dpjax.statistics.cells(["sex", "admitted"], [2, 2])
RELEASE = dpjax.Release([58, 21, 12, 64], dpjax.Laplace(10.0), TABLE, n=150)


@pytest.mark.parametrize("name", ["imwg", "soma", "pcn", "counts"])
def test_an_imputation_is_named_by_its_function(name):
    assert choose_imputation(RELEASE, name) == getattr(dpjax, name)()


def test_a_name_of_no_imputation_is_refused():
    with pytest.raises(ValueError, match=r"imputation: given 'gibbs'; expected one of \['auto', 'counts', 'imwg'"):
        dpjax.sample(jax.random.key(1), MODEL, RELEASE, imputation="gibbs")


@pytest.mark.parametrize(
    ("mechanism", "norm", "promised"),
    [
        (dpjax.Laplace.from_epsilon(0.5, 3.0), 1, ("epsilon", 0.5)),
        (dpjax.DiscreteLaplace.from_epsilon(0.5, 3.0), 1, ("epsilon", 0.5)),
        (dpjax.Gaussian.from_zcdp(0.2, 3.0), 2, ("rho", 0.2)),
        (dpjax.DiscreteGaussian.from_zcdp(0.2, 3.0), 2, ("rho", 0.2)),
    ],
)
def test_the_noise_of_a_promise_keeps_it(mechanism, norm, promised):
    """The promise that `describe` derives from the scale, for this sensitivity in the norm that counts."""
    sums = ProtectedSums(lambda asked: 3.0 if asked == norm else 99.0, "replace-one", 10, None, True)
    name, value = promised
    assert getattr(mechanism.promise.of_sums(sums), name) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: dpjax.Laplace(epsilon=1), r"epsilon: given 1; .* dpjax.Laplace.from_epsilon\(epsilon, sensitivity\)"),
        (lambda: dpjax.Gaussian(rho=1), r"rho: given 1; expected the scale .* dpjax.Gaussian.from_zcdp\(rho,"),
        (lambda: dpjax.Release([1.0], "laplace", TABLE, 5), r"mechanism: given 'laplace'; expected"),
        (lambda: dpjax.describe("a table"), r"release: given 'a table'; expected a release"),
    ],
)
def test_errors_show_what_was_given(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def test_mechanisms_of_a_scale_can_be_copied():
    """A constructor that reads its arguments must not be in the way of pytrees and pickles."""
    scaled = jax.tree.map(lambda leaf: 2 * leaf, dpjax.Laplace(3.0))
    assert scaled == dpjax.Laplace(6.0)


def test_one_field_needs_no_list():
    def program(n=5):
        mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(mean, 2.0))

    assert "records: y" in dpjax.from_numpyro(program, records="y").describe()


def test_targets_are_in_one_place():
    assert private.numpyro_target is dpjax.private_target
