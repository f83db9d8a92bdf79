# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Estimates and confidence intervals from a private release
#
# A survey has published two noisy sums over 100 people. No prior is at hand, or wanted: the parameters are estimated by maximum
# likelihood, with the noise accounted for, and intervals come from the likelihood alone.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import dpjax

# %% [markdown]
# ## The release
#
# Each person has a number y, and the sums of y and of y² were published with Laplace noise. Here the people are simulated, so that
# the true mean, 0.6, and variance, 1.5, are known.


# %%
def sums(record):
    """What a person adds to the two sums."""
    return jnp.stack([record["y"], record["y"] ** 2])


n = 100
model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), dpjax.models.InverseGammaPrior(2.0, 2.0))
truth = {"mean": jnp.array(0.6), "variance": jnp.array(1.5)}
design = dpjax.Release(jnp.zeros(2), dpjax.Laplace(jnp.array([10.0, 40.0])), sums, n)
people = model.sample_records(jax.random.key(1), truth, n)
release = design.sample(jax.random.key(2), people)
print(release.value.round(1))

# %% [markdown]
# ## The estimate
#
# The priors of the model say only where the search starts. The last two columns are Monte Carlo errors: chains were made longer
# until those of the estimates were below a twentieth of their standard errors.

# %%
fit = dpjax.maximum_likelihood(jax.random.key(3), model, release, progress=False)
print(fit)
assert fit.mcse_estimate["mean"] < 0.05 * fit.standard_errors["mean"]

# %% [markdown]
# Had the noise been ignored, the standard error of the mean would be that of 100 people who are known exactly.

# %%
ignored = np.sqrt(fit.estimate["variance"] / n)
print(f"standard error of the mean: {fit.standard_errors['mean']:.3f}, and {ignored:.3f} if the noise is ignored")
assert fit.standard_errors["mean"] > 1.2 * ignored

# %% [markdown]
# ## Intervals
#
# Wald intervals are symmetric; the likelihood of the variance is not. Profile intervals and those of the parametric bootstrap, from
# 100 releases that are simulated and refitted as one batch, follow its shape. The posterior's intervals are close, as these priors are weak.

# %%
intervals = {
    method: fit.confidence_interval(0.9, method, num_refits=100) for method in ("wald", "profile", "bootstrap")
}
posterior = dpjax.sample(jax.random.key(4), model, release, num_warmup=500, num_samples=1_000, progress=False)
ends = {
    name: {method: (float(found.lower[name]), float(found.upper[name])) for method, found in intervals.items()}
    | {"posterior": tuple(np.quantile(posterior.draws[name], [0.05, 0.95]))}
    for name in truth
}
upper = intervals["profile"].upper["variance"] - fit.estimate["variance"]
assert upper > fit.estimate["variance"] - intervals["profile"].lower["variance"]

# %% thumbnail=true alt="Two panels of four horizontal intervals each, by the Wald, profile and bootstrap methods and of the posterior: those of the mean are alike, those of the variance reach further to the right by the profile than by Wald's method. A dotted line marks the truth within all of them."
figure, panels = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for panel, (name, by_method) in zip(panels, ends.items(), strict=True):
    for place, (low, high) in enumerate(by_method.values()):
        panel.plot([low, high], [place, place], linewidth=3, color="C0")
    panel.axvline(float(truth[name]), color="#404040", linestyle=":", label="truth")
    panel.set_title(name)
panels[0].legend(frameon=False)
panels[0].set_yticks(range(len(ends["mean"])), list(ends["mean"]))
plt.show()

# %% [markdown]
# ## A test
#
# Is the variance 1? The likelihood-ratio test compares the fit with one that holds it there. Likelihoods are estimated by particles, and
# the statistic comes with its Monte Carlo error.

# %%
held = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), 1.0)
smaller = dpjax.maximum_likelihood(jax.random.key(5), held, release, progress=False)
test = dpjax.likelihood.likelihood_ratio_test(fit, smaller)
print(test)
assert test.degrees == 1
assert test.mcse_statistic < 0.2
