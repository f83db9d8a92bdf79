# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # From a NumPyro model to a private posterior
#
# A health survey asks 300 people for their age and whether they smoke. It keeps the answers and publishes three sums
# with Laplace noise. We have a model of the answers in NumPyro, and want its posterior given the noisy sums alone.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax

# %% [markdown]
# ## The model
#
# It is written as for complete data: parameters outside the plate, one record inside it. Ages are in decades from 45.


# %%
def smoking(n, age=None, smokes=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 1.5))
    slope = numpyro.sample("slope", dist.Normal(0.0, 0.5))
    numpyro.deterministic("share_at_25", jax.nn.sigmoid(intercept - 2.0 * slope))
    with numpyro.plate("people", n):
        age = numpyro.sample("age", dist.TruncatedNormal(0.0, 1.6, low=-3.0, high=4.0), obs=age)
        numpyro.sample("smokes", dist.Bernoulli(logits=intercept + slope * age), obs=smokes)


# %% [markdown]
# dpjax analyses the model and reports what it found. Each record site is also written as noise that does not depend on the
# parameters, which is what makes the sampler fast.

# %%
model = dpjax.from_numpyro(smoking, records=("age", "smokes"))
print(model.describe())

# %% [markdown]
# ## The release
#
# The statistic is a function of one record. One person changes the sums by at most 4 + 1 + 4 = 9 in all, so that
# Laplace noise of scale 9 protects every person with ε = 1. Here the survey is simulated, at parameters that are assumed to be unknown.


# %%
def smoking_by_age(record):
    smokes = record["smokes"].astype(float)
    return jnp.stack([record["age"], smokes, record["age"] * smokes])


truth = {"intercept": jnp.array(-0.9), "slope": jnp.array(-0.35)}
survey_key, noise_key, sample_key, check_key = jax.random.split(jax.random.key(20), 4)
survey = model.sample_records(survey_key, truth, 300)
design = dpjax.Release(np.zeros(3), dpjax.Laplace(scale=9.0), smoking_by_age, n=300)
release = design.sample(noise_key, survey)
print("published:", release.value.round(1))

# %% [markdown]
# ## The posterior
#
# The quantity that we asked for in the model is among the draws.

# %%
posterior = dpjax.sample(sample_key, model, release, num_samples=2_000)
print(posterior.summary())

# %% [markdown]
# ## What the noise costs
#
# With the confidential records the posterior would be narrower. The difference is the cost of privacy, which ignoring the noise
# would hide.

# %% thumbnail=true alt="Two densities of the share of smokers at age 25: the private one is wider than that of nearly exact sums, and both cover the true share."
exact = dpjax.Release(design.total(survey), dpjax.Laplace(scale=0.2), smoking_by_age, n=300)
without_noise = dpjax.sample(sample_key, model, exact, num_warmup=2_000, num_samples=2_000)

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for name, draws in (("private, ε = 1", posterior), ("nearly without noise", without_noise)):
    axes.hist(draws.draws["share_at_25"].ravel(), bins=60, density=True, histtype="step", label=name)
axes.axvline(
    float(jax.nn.sigmoid(truth["intercept"] - 2.0 * truth["slope"])), color="0.5", linestyle=":", label="truth"
)
axes.set_xlabel("share of smokers at age 25")
axes.set_yticks([])
axes.legend(frameon=False)
plt.show()
assert np.std(posterior.draws["share_at_25"]) > np.std(without_noise.draws["share_at_25"])

# %% [markdown]
# ## Does it work for this model?
#
# Simulation-based calibration draws truths from the prior and ranks each in the posterior of its own release. The ranks
# are uniform if model, release and sampler agree.

# %% alt="Histograms of the ranks of the truth for each quantity, within their grey bands."
calibration = dpjax.sampler_tests.sbc(check_key, model, design, num_replicates=100, num_samples=49)
print(calibration.summary())
calibration.plot()
plt.show()
