"""Fitted coefficients: the density of a minimiser, posteriors given it, and losses that a model refuses."""

import re
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.parameters import choose_kernel, initial_tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.mechanisms import ObjectivePerturbation, frozen_pytree
from dpjax.models.simulation import Position, init_state
from dpjax.numerics.triangles import full_matrix, log_determinant, upper_triangle
from tests.tools.category_oracle import check, moments, tables

X64 = jax.config.jax_enable_x64
PRIOR = np.array([1.0, 2.0, 1.5, 1.0])
MODEL = models.categorical(concentration=PRIOR)
DESIGN, RESPONSE = np.array([[1.0, -1], [1, -1], [1, 0.5], [1, 0.5]]), np.array([0.0, 1, 0, 1])
THETA, PENALTY, N = np.array([0.4, 1.1]), np.array([0.0, 0.8]), 5
NOISES = {
    "vector Laplace": dpjax.VectorLaplace(0.6),
    "Gaussian": dpjax.Gaussian(0.9),
    "maximum norm": dpjax.KNormLinf(0.6),
}
RUN = {"num_warmup": 500, "num_samples": 4_000, "progress": False}


def loss(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    """Logistic, of records that are cells: pairs of a covariate and a response."""
    predictor = jnp.sum(jnp.asarray(DESIGN, coefficients.dtype)[record["cell"]] * coefficients)
    return jax.nn.softplus(predictor) - jnp.asarray(RESPONSE, coefficients.dtype)[record["cell"]] * predictor


def other_loss(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    """That of telling response 0 from the rest."""
    predictor = jnp.sum(jnp.asarray(DESIGN, coefficients.dtype)[record["cell"]] * coefficients)
    return jax.nn.softplus(predictor) - (1 - jnp.asarray(RESPONSE, coefficients.dtype)[record["cell"]]) * predictor


def release_of(noise: dpjax.Mechanism, n=N) -> dpjax.Release:
    return dpjax.releases.objective_perturbation(THETA, loss, noise=noise, regularization=PENALTY, n=n)


def noise_density(noise: dpjax.Mechanism, linear: np.ndarray) -> float:
    standard = linear / float(noise.scale)
    if isinstance(noise, dpjax.Gaussian):
        return float(-np.sum(standard**2) / 2)
    return float(-np.linalg.norm(standard, np.inf if isinstance(noise, dpjax.KNormLinf) else 2))


def log_likelihood(noise: dpjax.Mechanism, table: np.ndarray) -> float:
    """Of fitted coefficients, up to a constant, by the textbook's gradient and Hessian of a logistic regression."""
    chance = special.expit(DESIGN @ THETA)
    gradient = DESIGN.T @ (table * (chance - RESPONSE)) + PENALTY * THETA
    hessian = (DESIGN.T * (table * chance * (1 - chance))) @ DESIGN + np.diag(PENALTY)
    determinant = np.linalg.det(hessian)
    if determinant < 1e-12:
        return -np.inf
    return noise_density(noise, -gradient) + np.log(determinant)


@pytest.mark.x64
def test_triangles() -> None:
    rng = np.random.default_rng(1)
    for d in (1, 2, 5):
        root = rng.normal(size=(d, d))
        matrix = jnp.asarray(root @ root.T + 0.1 * np.eye(d))
        np.testing.assert_array_equal(
            full_matrix(upper_triangle(matrix), d)[jnp.triu_indices(d)], upper_triangle(matrix)
        )
        np.testing.assert_allclose(log_determinant(matrix), np.linalg.slogdet(matrix)[1], rtol=1e-10 if X64 else 1e-3)
    assert np.isneginf(log_determinant(jnp.array([[1.0, 2.0], [2.0, 1.0]])))
    assert np.isneginf(log_determinant(-jnp.eye(2)))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_vector_noise_is_normalised(d: int) -> None:
    """In polar coordinates; the law of draws' norms and directions."""
    noise = dpjax.VectorLaplace(0.7)
    radius = np.linspace(0, 40, 40_001)
    points = jnp.asarray(np.outer(radius, np.ones(d) / np.sqrt(d)))
    density = np.exp(np.asarray(jax.vmap(noise.log_density, in_axes=(0, None))(points, jnp.zeros(d)), float))
    area = 2 * np.pi ** (d / 2) / special.gamma(d / 2)
    np.testing.assert_allclose(np.trapezoid(density * area * radius ** (d - 1), radius), 1.0, rtol=1e-4)
    drawn = np.asarray(
        jax.vmap(noise.sample, in_axes=(0, None))(jax.random.split(jax.random.key(2), 5_000), jnp.zeros(d))
    )
    assert stats.kstest(np.linalg.norm(drawn, axis=1), stats.gamma(d, scale=0.7).cdf).pvalue > 1e-3
    assert np.all(np.abs(drawn.mean(axis=0)) < 4 * drawn.std(axis=0) / np.sqrt(5_000))


def test_one_coordinate_is_laplace() -> None:
    found = dpjax.VectorLaplace(0.7).log_density(jnp.array([1.3]), jnp.array([0.2]))
    np.testing.assert_allclose(found, dpjax.Laplace(0.7).log_density(jnp.array([1.3]), jnp.array([0.2])), rtol=1e-5)
    assert np.all(np.isfinite(jax.grad(lambda b: dpjax.VectorLaplace(0.7).log_density(b, jnp.zeros(2)))(jnp.zeros(2))))


def log_densities(noise: dpjax.Mechanism, table: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Of coefficients [g, d], with the statistic at each of them."""
    cells = {"cell": jnp.arange(4)}
    mechanism = ObjectivePerturbation(noise, jnp.asarray(PENALTY))

    def at(theta: jax.Array) -> jax.Array:
        def derivatives(record: dict[str, jax.Array]) -> jax.Array:
            hessian = jax.hessian(loss)(theta, record)
            return jnp.concatenate([jax.grad(loss)(theta, record), upper_triangle(hessian)])

        return mechanism.log_density(theta, jnp.asarray(table, theta.dtype) @ jax.vmap(derivatives)(cells))

    return np.asarray(jax.jit(jax.vmap(at))(jnp.asarray(grid)), float)


TABLE = np.array([3, 1, 2, 4])
LINE = np.linspace(-14, 14, 701)


@pytest.mark.parametrize("name", NOISES)
def test_density_of_the_minimiser_is_normalised(name: str) -> None:
    """On a grid of coefficients, of which the intercept has no penalty; without the determinant it is not."""
    grid = np.stack(np.meshgrid(LINE, LINE, indexing="ij"), axis=-1).reshape(-1, 2)
    found = log_densities(NOISES[name], TABLE, grid)
    np.testing.assert_allclose(np.exp(found).sum() * (LINE[1] - LINE[0]) ** 2, 1.0, rtol=5e-3)
    chance = special.expit(grid @ DESIGN.T)
    weights = TABLE * chance * (1 - chance)
    hessians = np.einsum("gk,ki,kj->gij", weights, DESIGN, DESIGN) + np.diag(PENALTY)
    without = np.exp(found) / np.maximum(np.linalg.det(hessians), 1e-300)
    assert abs(without.sum() * (LINE[1] - LINE[0]) ** 2 - 1) > 0.1


def test_minimisers_have_that_density() -> None:
    """Draws of b and an optimiser, against the distribution function of the intercept."""
    grid = np.stack(np.meshgrid(LINE, LINE, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(log_densities(NOISES["Gaussian"], TABLE, grid)).reshape(len(LINE), -1).sum(axis=1)
    distribution = np.cumsum(density) / density.sum() - density / density.sum() / 2
    rng = np.random.default_rng(3)

    def fit(linear: np.ndarray) -> np.ndarray:
        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            predictor = DESIGN @ theta
            value = (
                TABLE @ (np.logaddexp(0, predictor) - RESPONSE * predictor) + PENALTY @ theta**2 / 2 + linear @ theta
            )
            gradient = DESIGN.T @ (TABLE * (special.expit(predictor) - RESPONSE)) + PENALTY * theta + linear
            return value, gradient

        return optimize.minimize(objective, np.zeros(2), jac=True, method="BFGS").x

    drawn = np.array([fit(rng.normal(size=2) * 0.9)[0] for _ in range(400)])
    assert stats.kstest(drawn, lambda values: np.interp(values, LINE, distribution)).pvalue > 1e-3


@pytest.mark.x32
@pytest.mark.parametrize("imputation", [dpjax.imwg(), dpjax.counts()], ids=str)
@pytest.mark.parametrize("name", NOISES)
def test_posterior(name: str, imputation) -> None:
    noise = NOISES[name]
    posterior = dpjax.sample(jax.random.key(1), MODEL, release_of(noise), imputation=imputation, **RUN)
    check(posterior.draws["probabilities"], moments(lambda table: log_likelihood(noise, table), [N], PRIOR))


@pytest.mark.x32
def test_beside_a_noisy_count() -> None:
    noise = NOISES["Gaussian"]
    counts = dpjax.Release([3.0], dpjax.Laplace(1.0), statistics.grouped("cell", [0, -1, 0, -1]), N)
    both = dpjax.joint(counts, release_of(noise))
    exact = moments(lambda table: log_likelihood(noise, table) - abs(3.0 - table[0] - table[2]), [N], PRIOR)
    check(dpjax.sample(jax.random.key(2), MODEL, both, **RUN).draws["probabilities"], exact)


@pytest.mark.slow
def test_one_class_against_the_rest_twice() -> None:
    """Two fits with noise of their own: their densities multiply."""
    noise = NOISES["Gaussian"]
    flipped = dpjax.releases.objective_perturbation(-THETA, other_loss, noise=noise, regularization=PENALTY, n=N)
    # With the responses exchanged, the derivatives at -θ are those of the first with their signs exchanged.
    exact = moments(lambda table: 2 * log_likelihood(noise, table), [N], PRIOR)
    both = dpjax.joint(release_of(noise), flipped)
    check(dpjax.sample(jax.random.key(7), MODEL, both, **RUN).draws["probabilities"], exact)


CLASSES = {"covariate": np.array([-0.8, 0.5, -0.8, 0.5]), "label": np.array([0, 1, 2, 2])}


def classify(coefficients: jax.Array, record: dict[str, jax.Array], positive: int) -> jax.Array:
    """The shipped loss of one class against the rest, of records that are cells."""
    fields = {
        "x": jnp.asarray(CLASSES["covariate"], coefficients.dtype)[record["cell"]],
        "y": jnp.asarray(CLASSES["label"])[record["cell"]],
    }
    return statistics.Logistic(positive=positive)(coefficients, fields)


ONE_AGAINST_REST = [partial(classify, positive=positive) for positive in range(3)]
FITS = np.array([[-0.3, -0.7], [-0.5, 0.6], [0.2, 0.1]])


def one_against_rest() -> dpjax.Release:
    """Three fits as a library publishes them, with noise of their own."""
    releases = [
        dpjax.releases.objective_perturbation(theta, one, noise=NOISES["Gaussian"], regularization=PENALTY, n=N)
        for theta, one in zip(FITS, ONE_AGAINST_REST, strict=True)
    ]
    return dpjax.joint(*releases)


def log_likelihood_of_classes(table: np.ndarray) -> float:
    """By gradients and Hessians in formulas."""
    design, total = np.column_stack([np.ones(4), CLASSES["covariate"]]), 0.0
    for positive, theta in enumerate(FITS):
        chance = special.expit(design @ theta)
        gradient = design.T @ (table * (chance - (CLASSES["label"] == positive))) + PENALTY * theta
        hessian = (design.T * (table * chance * (1 - chance))) @ design + np.diag(PENALTY)
        determinant = np.linalg.det(hessian)
        total += noise_density(NOISES["Gaussian"], -gradient) + np.log(determinant) if determinant > 1e-12 else -np.inf
    return total


def test_likelihood_of_three_classes_one_against_the_rest() -> None:
    every = tables([N], 4)
    records = np.array([np.repeat(np.arange(4), table) for table in every])
    found = jax.jit(jax.vmap(lambda cells: one_against_rest().log_likelihood({"cell": cells})))(jnp.asarray(records))
    expected = np.array([log_likelihood_of_classes(table) for table in every])
    possible = np.isfinite(expected)
    difference = (np.asarray(found) - expected)[possible]
    # Up to a constant; a table of one kind of records has no curvature but for rounding.
    np.testing.assert_allclose(difference, difference[0], atol=1e-9 if X64 else 1e-3)
    assert possible.sum() > 40


@pytest.mark.slow
def test_three_classes_one_against_the_rest() -> None:
    exact = moments(log_likelihood_of_classes, [N], PRIOR)
    check(dpjax.sample(jax.random.key(8), MODEL, one_against_rest(), **RUN).draws["probabilities"], exact)


@pytest.mark.x32
def test_unknown_number() -> None:
    noise = NOISES["Gaussian"]
    release = release_of(noise, dpjax.UnknownCount(models.UniformCount(3, 6)))
    exact = moments(lambda table: log_likelihood(noise, table), range(3, 7), PRIOR)
    posterior = dpjax.sample(jax.random.key(3), MODEL, release, imputation=dpjax.imwg(), **RUN)
    check(posterior.draws["probabilities"], exact)


def variant(number: int) -> dpjax.Release:
    """One of several fits: other coefficients, penalty and scale."""
    noise = dpjax.Gaussian(0.9 + 0.1 * number)
    theta = THETA + 0.2 * number
    return dpjax.releases.objective_perturbation(theta, loss, noise=noise, regularization=PENALTY + number, n=N)


SHORT = {"num_chains": 2, "num_warmup": 20, "num_samples": 20, "progress": False, "imputation": dpjax.imwg()}


@pytest.mark.x64
def test_other_coefficients_compile_nothing(compilations: list[str]) -> None:
    dpjax.sample(jax.random.key(1), MODEL, variant(0), **SHORT)
    compilations.clear()
    dpjax.sample(jax.random.key(1), MODEL, variant(1), **SHORT)
    assert compilations == []


@pytest.mark.x64
def test_a_batch_of_fits_has_the_draws_of_each_alone() -> None:
    both = dpjax.sample_batch(jax.random.key(1), MODEL, [variant(0), variant(1)], refresh=False, **SHORT)
    for number in range(2):
        key = jax.random.fold_in(jax.random.key(1), number)
        alone = dpjax.sample(key, MODEL, variant(number), refresh=False, **SHORT).draws["probabilities"]
        np.testing.assert_allclose(both.draws["probabilities"][number], alone, rtol=1e-4)


@pytest.mark.x64
def test_coefficients_are_read_from_their_place_in_several_values() -> None:
    """The contribution of a record to joint releases is that to each of them."""
    counts = dpjax.Release([3.0], dpjax.Laplace(1.0), statistics.grouped("cell", [0, -1, 0, -1]), N)
    three = [variant(1), counts, variant(2)]
    record = {"cell": jnp.array(2)}
    found = dpjax.joint(dpjax.joint(*three[:2]), three[2]).contribution(record)
    expected = jnp.concatenate([release.contribution(record) for release in three])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(TypeError, match=r"^statistic: given no coefficients; .*release\.contribution"):
        variant(1).statistic(record)


@frozen_pytree
@dataclass(frozen=True)
class WithoutDeterminant(ObjectivePerturbation):
    """Forgets that the coefficients are not the linear term."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        d = value.size
        curvature = full_matrix(statistic[d:], d) + jnp.diag(self.regularization)
        return super().log_density(value, statistic) - jnp.where(
            log_determinant(curvature) > -jnp.inf, log_determinant(curvature), 0.0
        )


def kept_p_value(kind: type[ObjectivePerturbation]) -> float:
    """That chains started from the enumerated posterior keep its law of tables over three sweeps."""
    noise, every = dpjax.Gaussian(4.0), tables([N], 4)
    release = dpjax.Release(THETA, kind(noise, PENALTY), statistics.loss_derivatives(loss, THETA), N)
    shape, total = PRIOR + every, PRIOR.sum() + N
    log_weight = special.gammaln(shape).sum(axis=1) - special.gammaln(every + 1).sum(axis=1) - special.gammaln(total)
    weight = special.softmax(log_weight + np.array([log_likelihood(noise, table) for table in every]))
    rng = np.random.default_rng(5)
    drawn = rng.choice(len(every), size=6_000, p=weight)
    records = np.array([np.repeat(np.arange(4), every[place]) for place in drawn])
    shares = np.array([rng.dirichlet(shape[place]) for place in drawn])
    plan = SweepPlan(dpjax.imwg(scan="systematic"), False, choose_kernel(MODEL, None), "held")
    kernel = build_kernel(MODEL, release, plan)
    tuning = initial_tuning(jax.random.key(0), MODEL)

    def chain(key: jax.Array, cells: jax.Array, probabilities: jax.Array) -> jax.Array:
        state = init_state(release, Position({"probabilities": probabilities}, {"cell": cells}))

        def sweep(state, key):
            return kernel(key, state, tuning)[0], None

        return jax.lax.scan(sweep, state, jax.random.split(key, 3))[0].latent.records["cell"]

    keys = jax.random.split(jax.random.key(6), len(drawn))
    kept = jax.jit(jax.vmap(chain))(keys, jnp.asarray(records), jnp.asarray(shares, float))
    # How many different pairs of fields there are, and the number of records in the first: both enter the determinant.
    found = np.array([np.bincount(cells, minlength=4) for cells in np.asarray(kept)])
    side = lambda counts: counts[:, 0] + counts[:, 1]  # noqa: E731
    expected = np.array([weight[side(every) == number].sum() for number in range(N + 1)])
    observed = np.bincount(side(found), minlength=N + 1)
    likely = expected * len(drawn) > 5
    rest = [observed[~likely].sum(), expected[~likely].sum() * len(drawn)] if np.any(~likely) else None
    pairs = [*zip(observed[likely], expected[likely] * len(drawn), strict=True)] + ([rest] if rest else [])
    seen, hoped = np.array(pairs).T
    return float(stats.chisquare(seen, hoped * seen.sum() / hoped.sum()).pvalue)


@pytest.mark.x32
def test_perfect_start() -> None:
    assert kept_p_value(ObjectivePerturbation) > 1e-4
    assert kept_p_value(WithoutDeterminant) < 1e-4


def test_little_noise_leaves_the_records_with_that_minimum() -> None:
    """As the noise vanishes, only tables whose own penalised fit is the published one are likely."""
    table = np.array([2, 1, 0, 2])

    def gradient(theta: np.ndarray) -> np.ndarray:
        return DESIGN.T @ (table * (special.expit(DESIGN @ theta) - RESPONSE)) + PENALTY * theta

    theta = optimize.root(gradient, np.zeros(2)).x
    release = dpjax.releases.objective_perturbation(
        theta, loss, noise=dpjax.VectorLaplace(1e-3), regularization=PENALTY, n=N
    )
    every = tables([N], 4)
    records = np.array([np.repeat(np.arange(4), one) for one in every])
    density = np.asarray(jax.vmap(lambda cells: release.log_likelihood({"cell": cells}))(jnp.asarray(records)))
    assert every[np.argmax(density)].tolist() == table.tolist()
    assert np.sort(density)[-1] - np.sort(density)[-2] > 50


@pytest.mark.x64
def test_shipped_losses() -> None:
    """Gradients and Hessians by formulas."""
    record = {"x": jnp.array([3.0, 4.0]), "y": jnp.array(1.0)}
    theta = np.array([0.2, 0.1, -0.3])
    design = np.array([1.0, 3.0, 4.0])
    chance, residual = special.expit(design @ theta), 1 - design @ theta
    expected = {
        statistics.Logistic(): ((chance - 1) * design, chance * (1 - chance)),
        statistics.Logistic(positive=2): (chance * design, chance * (1 - chance)),
        statistics.Squared(): (-residual * design, 1.0),
        statistics.Huber(threshold=0.5): (-0.5 * design, 0.0),
        statistics.Huber(threshold=5.0): (-residual * design, 1.0),
    }
    for one, (gradient, curvature) in expected.items():
        found = statistics.loss_derivatives(one, theta)(record)
        hessian = curvature * np.outer(design, design)[np.triu_indices(3)]
        np.testing.assert_allclose(found, np.concatenate([gradient, hessian]), rtol=1e-4, atol=1e-6)
    clipped = statistics.loss_derivatives(statistics.Squared(norm=1.0, intercept=False), [0.0, 0.0])(record)
    np.testing.assert_allclose(clipped[:2], [-0.6, -0.8], rtol=1e-5)


def test_words_and_text() -> None:
    release = release_of(NOISES["vector Laplace"])
    words = dpjax.describe(release)
    assert "Gradient and Hessian of the loss loss at 2 published coefficients" in words
    assert "2 coefficients fitted with penalties of 0, 0.8 and a random linear term" in words
    assert "depends on bounds of the loss" in words
    with pytest.raises(ValueError, match=r"statistic: given the function .*FittedDerivatives.*statistic="):
        dpjax.from_json(release.to_json())
    again = dpjax.from_json(release.to_json(), statistic=release.statistic)
    assert again.mechanism.linear_term == release.mechanism.linear_term
    with pytest.raises(TypeError, match=r"ObjectivePerturbation, which has no `sample`"):
        release.sample(jax.random.key(0), {"cell": jnp.zeros(N, int)})


def concave(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    return -loss(coefficients, record)


def infinite(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    return loss(coefficients, record) + jnp.log(coefficients[0] - 0.4)


def vector(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    return coefficients * record["cell"].astype(coefficients.dtype)


def build(loss=loss, coefficients=(0.4, 1.1), noise=NOISES["Gaussian"], regularization=0.5, n=N) -> dpjax.Release:
    return dpjax.releases.objective_perturbation(coefficients, loss, noise=noise, regularization=regularization, n=n)


WITH_A_MODEL = [
    ({"loss": concave}, "loss: given concave, whose Hessian is negative for a record of the model; expected a convex"),
    ({"loss": infinite}, "loss: given infinite, of which a derivative is not finite at the coefficients; expected"),
    ({"loss": vector}, "loss: given a result float"),
    ({"loss": statistics.Logistic()}, "record['x']: given a record with fields ['cell']; expected a field 'x'"),
    (
        {"loss": statistics.Squared(covariates="cell"), "coefficients": [1.0]},
        "coefficients: given shape",
    ),
]


@pytest.mark.parametrize(("options", "message"), WITH_A_MODEL)
def test_what_is_refused_with_a_model(options: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        dpjax.sample(jax.random.key(0), MODEL, build(**options))


def constant(coefficients: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
    return loss(jnp.stack([coefficients[0], jnp.zeros_like(coefficients[0])]), record)


def test_directions_without_curvature_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^regularization: given penalties under which some direction"):
        dpjax.sample(jax.random.key(0), MODEL, build(loss=constant, regularization=0.0))
    with pytest.raises(ValueError, match=r"^statistic: given 4 coordinates; expected 5"):
        dpjax.Release(THETA, ObjectivePerturbation(NOISES["Gaussian"], PENALTY), statistics.cells("cell", 4), N)
