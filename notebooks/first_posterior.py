# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A first private posterior
#
# An agency counts 400 people by sex and admission and publishes the four counts with discrete Gaussian noise. We hold
# the noisy counts, and want the odds ratio of admission.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import dpjax

# %% [markdown]
# ## The release
#
# The rows are men and women, the columns admitted and rejected. The agency states the scale of its noise and the total.

# %%
published = [[131, 119], [47, 122]]
fields, levels = ["sex", "admission"], [["men", "women"], ["admitted", "rejected"]]
statistic = dpjax.statistics.cells(fields, levels=levels)
release = dpjax.Release(published, dpjax.DiscreteGaussian(6.25), statistic, n=400)

# %% [markdown]
# ## The model
#
# Every person falls into a cell with unknown probabilities, all equally likely beforehand. For a 2 by 2 table the model
# reports the odds ratio too.

# %%
model = dpjax.models.categorical(fields=fields, levels=levels)

# %% [markdown]
# ## The posterior
#
# The summary shows the means, the Monte Carlo errors and whether the chains agree.

# %%
posterior = dpjax.sample(jax.random.key(7), model, release, num_samples=2_000)
print(posterior.summary())

# %% [markdown]
# ## Comparison with the naive answer
#
# The naive analysis ignores the noise and draws the probabilities from a Dirichlet distribution with these counts.

# %% alt="Two densities of the log odds ratio: the one that accounts for the noise is wider than the one that ignores it."
naive = np.random.default_rng(7).dirichlet(1 + np.ravel(published), size=8_000)
naive_ratio = np.log(naive[:, 0] * naive[:, 3] / (naive[:, 1] * naive[:, 2]))
exact_ratio = posterior.draws["log_odds_ratio"].ravel()

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for draws, label, colour in (
    (naive_ratio, "noise ignored", "#d95f02"),
    (exact_ratio, "noise accounted for", "#1f6fb4"),
):
    axes.hist(draws, bins=60, density=True, histtype="step", label=label, color=colour)
axes.set_xlabel("log odds ratio of admission, men against women")
axes.set_yticks([])
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# The naive answer is too certain: it omits the uncertainty from the noise.

# %%
print(
    f"standard deviation {naive_ratio.std():.3f} with noise ignored, {exact_ratio.std():.3f} with noise accounted for"
)
assert exact_ratio.std() > 1.05 * naive_ratio.std()

# %% [markdown]
# ## Does the model fit the release?
#
# New releases drawn from the posterior should look like the one that was made.

# %%
prediction = posterior.predict(jax.random.key(8), num_samples=1_000)
shares = np.mean(prediction.values < prediction.released, axis=0)
print("share of predicted counts below the published ones:", shares.round(2))
assert np.all((shares > 0.05) & (shares < 0.95))
