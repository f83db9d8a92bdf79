# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A private regression over ε
#
# How does the progression of diabetes depend on body mass index and blood pressure? The answer for 442 patients, from the
# data themselves and from sums that were released at several ε. Each release is analysed in three ways: as if it had no
# noise, exactly, and with a Normal distribution for the sum.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import dpjax

# %% [markdown]
# ## The patients
#
# Real ones: Efron, Hastie, Johnstone and Tibshirani (2004), *Least angle regression*, Annals of Statistics 32, 407–499, as
# scikit-learn ships them (`pip install scikit-learn`). Public bounds, chosen without the data, map each variable to
# [−1, 1], the unit of the model and the release.

# %%
data = load_diabetes(scaled=False)
columns = [data.data[:, data.feature_names.index(name)] for name in ("bmi", "bp")]
bounds = [(15.0, 45.0), (50.0, 140.0)]


def rescale(column, low, high):
    """A column clamped to its bounds and mapped to [-1, 1]."""
    return (2 * np.clip(column, low, high) - low - high) / (high - low)


x = np.stack([rescale(column, *bound) for column, bound in zip(columns, bounds, strict=True)], axis=1)
y = rescale(data.target, 0.0, 360.0)
records = {"x": jnp.asarray(x, float), "y": jnp.asarray(y, float)}
n = len(y)

# %% [markdown]
# ## The releases
#
# Nine sums: of all products of (1, bmi, blood pressure, progression), with Laplace noise. Replacing one patient moves them by
# at most the sensitivity, which the statistic knows.

# %%
statistic = dpjax.statistics.gram(lower=[-1, -1], upper=[1, 1], response=(-1, 1))
confidential = jnp.sum(jax.vmap(statistic)(records), axis=0)
epsilons = (0.5, 1.0, 4.0)
sensitivity = statistic.sensitivity(1, "replace-one")
releases = {}
for place, epsilon in enumerate(epsilons):
    mechanism = dpjax.Laplace(dpjax.mechanisms.laplace_scale(epsilon, sensitivity))
    value = mechanism.sample(jax.random.fold_in(jax.random.key(4), place), confidential)
    releases[epsilon] = dpjax.Release(value, mechanism, statistic, n)
print(f"sensitivity {sensitivity:.2f}; noise of scale {sensitivity / 0.5:.0f} at ε = 0.5, beside sums of up to {n}")

# %% [markdown]
# ## The model
#
# A linear regression whose variance is unknown, and Normal covariates with unknown mean and covariance.

# %%
precision, shape, scale = 0.1, 2.0, 0.1
model = dpjax.models.linear_regression(
    covariate_prior=dpjax.models.NormalInverseWishartPrior(jnp.zeros(2), 1.0, 4.0, 0.1 * jnp.eye(2)),
    noise_variance=dpjax.models.NormalInverseGammaPrior(jnp.zeros(3), precision * jnp.eye(3), shape, scale),
)

# %% [markdown]
# ## Three analyses, and the truth
#
# Given the sums the posterior has a closed form: *non-private* with the confidential ones, *naive* with those released. Noise can
# make the naive answer impossible: a matrix of products that no data have, or a negative variance.


# %%
def given_sums(sums, rng, num_draws=4_000):
    """Draws [1, draw, 3] of the coefficients given the nine sums; None if no data have them."""
    to_y, total, (x1, x11, x2, x12, x22) = sums[:3], sums[3], sums[4:]
    gram = np.array([[n, x1, x2], [x1, x11, x12], [x2, x12, x22]]) + precision * np.eye(3)
    mean = np.linalg.solve(gram, to_y)
    rest = scale + (total - mean @ to_y) / 2
    if np.linalg.eigvalsh(gram).min() <= 0 or rest <= 0:
        return None
    variance = rest / rng.gamma(shape + n / 2, size=num_draws)
    normal = rng.multivariate_normal(np.zeros(3), np.linalg.inv(gram), num_draws)
    return {"coef": (mean + np.sqrt(variance)[:, None] * normal)[None]}


rng = np.random.default_rng(2)
answers = {}
for place, (epsilon, release) in enumerate(releases.items()):
    chain_key, large_key = jax.random.split(jax.random.fold_in(jax.random.key(5), place))
    exact = dpjax.sample(chain_key, model, release, num_warmup=1_000, num_samples=1_500, progress=False)
    large = dpjax.sample_clt(large_key, model, release, num_chains=2, num_warmup=400, num_samples=500, progress=False)
    found = {
        "non-private": given_sums(np.asarray(confidential, float), rng),
        "naive": given_sums(np.asarray(release.value, float), rng),
        "dpjax": exact,
        "Normal sum": large,
    }
    answers[epsilon] = {name: answer for name, answer in found.items() if answer is not None}
posterior = answers[1.0]["dpjax"]
print({epsilon: list(found) for epsilon, found in answers.items()})

# %% thumbnail=true alt="Three panels, for ε = 0.5, 1 and 4, each with intervals of the intercept and two slopes: the exact posterior narrows towards the non-private one as ε grows, while the naive intervals are narrow and off."
figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharex=True)
for panel, (epsilon, found) in zip(panels, answers.items(), strict=True):
    dpjax.plot.forest(found, names=["coef"], axes=panel)
    panel.get_legend().remove()
    panel.set_title(f"ε = {epsilon:g}")
    panel.set_xlim(-1.5, 2)
    panel.set_yticklabels([])
panels[0].set_yticks(range(3), ["intercept", "body mass index", "blood pressure"])
figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()

# %% [markdown]
# ## What the picture says
#
# The naive intervals are as narrow as those of the confidential data, and miss them; the exact ones are as wide as each release
# makes them, and cover them. As ε grows all come together.


# %%
def coefficients(answer):
    """Draws [draw, 3] of the coefficients."""
    return np.reshape(getattr(answer, "draws", answer)["coef"], (-1, 3))


target = coefficients(answers[1.0]["non-private"]).mean(axis=0)
for epsilon, found in answers.items():
    draws = coefficients(found["dpjax"])
    low, high = np.quantile(draws, [0.005, 0.995], axis=0)
    assert np.all((low < target) & (target < high)), epsilon
    print(f"ε = {epsilon:<4g} sd of the slopes {draws[:, 1:].std(axis=0).round(3)}")
widths = [coefficients(found["dpjax"]).std(axis=0)[1:].mean() for found in answers.values()]
assert widths[0] > widths[1] > widths[2]

# %%
for epsilon, found in answers.items():
    if "naive" in found:
        naive = coefficients(found["naive"])
        print(
            f"ε = {epsilon:<4g} naive off by {np.abs((naive.mean(axis=0) - target) / naive.std(axis=0)).max():.1f} of its sd"
        )
naive = [coefficients(found["naive"]) for found in answers.values() if "naive" in found]
off = [np.abs((draws.mean(axis=0) - target) / draws.std(axis=0)).max() for draws in naive]
assert len(off) < 3 or max(off) > 3

# %% [markdown]
# ## A Normal distribution for the sum
#
# With 442 patients the sums are nearly Normal, so that `sample_clt`, which imputes no record, agrees with the exact chain. `dpjax.sampler_tests.invariance_test` measures how well.

# %%
for epsilon, found in answers.items():
    exact, large = (coefficients(found[name]) for name in ("dpjax", "Normal sum"))
    shift = (large.mean(axis=0) - exact.mean(axis=0)) / exact.std(axis=0)
    print(
        f"ε = {epsilon:<4g} means differ by {np.abs(shift).max():.2f} sd, widths by {np.abs(large.std(axis=0) / exact.std(axis=0) - 1).max():.0%}"
    )
    assert np.abs(shift).max() < 0.5
