# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A logistic regression that was published by objective perturbation
#
# A clinic publishes the two coefficients of a logistic regression, fitted with differential privacy, and nothing else. What
# do they say about the coefficients that we wanted? Taken for an ordinary fit, they promise too much.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist
from scipy.optimize import minimize

import dpjax

# %% [markdown]
# ## What was published
#
# The clinic drew a random vector b of density ∝ exp(−|b| / β), and published the coefficients that minimise
#
#     Σ log(1 + exp(η_i)) − y_i η_i + w² / 2 + bᵀ(c, w),    η_i = c + w x_i,
#
# where covariates were clipped to ±2, and the intercept c has no penalty. It says so, with n = 500 and ε = 1. The patients are
# made up, so that we know the answer.

# %%
N, CLIP, EPSILON = 500, 2.0, 1.0
BETA = 2 * np.hypot(1.0, CLIP) / EPSILON  # twice the norm of a record over ε
PENALTY = np.array([0.0, 1.0])


def draw_patients(rng, coef):
    """The design [n, 2] with clipped covariates, and responses [n]."""
    covariate = rng.normal(size=N)
    response = rng.uniform(size=N) < 1 / (1 + np.exp(-coef[0] - coef[1] * covariate))
    return np.column_stack([np.ones(N), np.clip(covariate, -CLIP, CLIP)]), response.astype(float)


def fit(design, response, linear):
    """The coefficients [2] that minimise the perturbed objective."""

    def objective(coef):
        predictor = design @ coef
        risk = np.sum(np.logaddexp(0, predictor) - response * predictor) + PENALTY @ coef**2 / 2 + linear @ coef
        return risk, design.T @ (1 / (1 + np.exp(-predictor)) - response) + PENALTY * coef + linear

    return minimize(objective, np.zeros(2), jac=True, options={"gtol": 1e-6}).x


def publish(rng, coef):
    """The coefficients that were published, and those of the same patients without noise."""
    design, response = draw_patients(rng, coef)
    direction = rng.normal(size=2)
    noise = rng.gamma(2.0, BETA) * direction / np.linalg.norm(direction)
    return fit(design, response, noise), fit(design, response, np.zeros(2))


truth = np.array([-0.5, 0.8])
published, without_noise = publish(np.random.default_rng(9), truth)
print(f"published {published.round(2)}, without noise {without_noise.round(2)}, in truth {truth}")

# %% [markdown]
# ## The release
#
# At its minimum the gradient of the objective is zero, so that the published coefficients tell b up to the patients. dpjax
# derives their density from the loss: no derivative has to be written down.


# %%
def release_of(coef):
    """The release of published coefficients."""
    loss, noise = dpjax.statistics.Logistic(norm=CLIP), dpjax.mechanisms.VectorLaplace(BETA)
    return dpjax.releases.objective_perturbation(coef, loss, noise=noise, regularization=PENALTY, n=N)


release = release_of(published)
print(dpjax.describe(release))

# %% [markdown]
# ## The posterior
#
# The model is the one that we would use with the patients at hand, in NumPyro. It has a distribution for covariates too, as
# these are confidential.


# %%
def clinic(n):
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("patients", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * x))


model = dpjax.from_numpyro(clinic, records=("x", "y"))
SAMPLING = {"num_warmup": 400, "num_samples": 400, "progress": False}
posterior = dpjax.sample(jax.random.key(1), model, release, **SAMPLING)
print(posterior.summary())

# %% [markdown]
# ## Naive: as if they were fitted without noise
#
# An ordinary fit has a Normal distribution about its estimate, whose covariance is the inverse of the expected Hessian. Of
# privacy noise and penalty it knows nothing.


# %%
def naive_covariance(coef):
    """The covariance [2, 2] of an ordinary fit with these coefficients, for standard Normal covariates."""
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    design = np.column_stack([np.ones(40), np.clip(points, -CLIP, CLIP)])
    chance = 1 / (1 + np.exp(-design @ coef))
    hessian = (design.T * (weights / weights.sum() * chance * (1 - chance))) @ design
    return np.linalg.inv(N * hessian)


naive = np.sqrt(np.diag(naive_covariance(published)))
exact = posterior.draws["coef"].reshape(-1, 2)
print(
    f"naive {published.round(2)} ± {naive.round(2)}; dpjax {exact.mean(axis=0).round(2)} ± {exact.std(axis=0).round(2)}"
)
assert np.all(exact.std(axis=0) > naive)

# %% alt="Draws of intercept and slope from the posterior, and the 90 % ellipse of the naive analysis, which is smaller. A cross marks the published coefficients, a star the true ones, which the posterior covers."
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
axes.plot(*exact.T, ".", markersize=2, alpha=0.4, color="C0", label="posterior")
circle = np.linspace(0, 2 * np.pi, 200)
ellipse = np.linalg.cholesky(naive_covariance(published)) @ np.stack([np.cos(circle), np.sin(circle)])
axes.plot(*(published[:, None] + np.sqrt(4.605) * ellipse), color="C1", label="naive, 90 %")
axes.plot(*published, "x", color="C1", label="published")
axes.plot(*truth, "*", color="#404040", markersize=10, label="truth")
axes.set_xlabel("intercept")
axes.set_ylabel("slope")
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Twelve clinics
#
# Twelve times coefficients are drawn from the prior, patients are drawn, and a fit is published. A 90 % interval should hold the
# truth about eleven times in twelve.

# %%
CLINICS = 12
rng = np.random.default_rng(3)
truths = rng.normal(size=(CLINICS, 2))
fits = np.stack([publish(rng, coef)[0] for coef in truths])
intervals = {"naive": np.empty((CLINICS, 2, 2)), "dpjax": np.empty((CLINICS, 2, 2))}
for place, coef in enumerate(fits):
    wide = 1.645 * np.sqrt(np.diag(naive_covariance(coef)))
    intervals["naive"][place] = coef - wide, coef + wide
    drawn = dpjax.sample(jax.random.fold_in(jax.random.key(2), place), model, release_of(coef), **SAMPLING)
    intervals["dpjax"][place] = np.quantile(drawn.draws["coef"], [0.05, 0.95], axis=(0, 1))
held = {name: np.mean((each[:, 0] <= truths) & (truths <= each[:, 1])) for name, each in intervals.items()}
print({name: f"{share:.0%}" for name, share in held.items()})
assert held["dpjax"] > 0.9 - 3 * np.sqrt(0.09 / (2 * CLINICS))
assert held["naive"] < held["dpjax"]

# %% thumbnail=true alt="Two panels, of intercept and slope, with the 90 % intervals of twelve clinics less the true value: most of dpjax's hold zero, while more of the shorter naive ones miss it."
figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
for which, (panel, title) in enumerate(zip(panels, ("intercept", "slope"), strict=True)):
    for shift, color, (name, each) in zip((-0.15, 0.15), ("C1", "C0"), intervals.items(), strict=True):
        ends = each[:, :, which] - truths[:, [which]]
        panel.hlines(np.arange(CLINICS) + shift, *ends.T, color=color, linewidth=3, label=name)
    panel.axvline(0.0, color="0.5", linestyle=":")
    panel.set_xlabel(f"{title}, less the true one")
panels[0].set_yticks([])
panels[0].set_ylabel("twelve clinics")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
plt.show()
