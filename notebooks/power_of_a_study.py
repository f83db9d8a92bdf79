# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # The power of a study whose results will be private
#
# A hundred patients are measured before and after a treatment. Only a noisy sum of their changes will be published. How
# large must the effect be for readers to see it, and how much of that is the price of privacy?

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import dpjax

# %% [markdown]
# ## The plan
#
# Changes are Normal with standard deviation 1, in units of which effects are given, and clamped to ±3. Their sum gets
# Laplace noise of scale 6 / ε. The effect counts as detected if the posterior probability of a positive mean is above 0.95.

# %%
n, clamp = 100, 3.0
statistic = dpjax.statistics.total("y", lower=-clamp, upper=clamp)
model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 1.0), 1.0)
effects, epsilons, repeats = (0.0, 0.2, 0.4, 0.6), (0.3, 1.0), 80
assert statistic.sensitivity(1, "replace-one") == 2 * clamp

# %% [markdown]
# ## Many studies at once
#
# Eighty made-up studies for each effect and each ε, 640 posteriors in all, by one program.

# %%
rng = np.random.default_rng(6)
changes = rng.normal(np.array(effects)[:, None, None], 1.0, (len(effects), repeats, n))
sums = np.clip(changes, -clamp, clamp).sum(axis=-1)
scales = 2 * clamp / np.array(epsilons)
released = sums + scales[:, None, None] * rng.laplace(size=(len(epsilons), *sums.shape))
releases = [
    dpjax.Release([value], dpjax.Laplace(scale), statistic, n)
    for scale, values in zip(scales, released, strict=True)
    for value in values.ravel()
]
options = {"num_chains": 2, "num_warmup": 200, "num_samples": 300, "progress": False}
posterior = dpjax.sample_batch(jax.random.key(1), model, releases, **options)
draws = posterior.draws["mean"].reshape(*released.shape, -1)

# %% [markdown]
# ## Power
#
# The share of studies in which the effect is detected. Without noise the posterior is Normal in closed form. The naive analysis
# ignores the noise.


# %%
def probability_if_exact(sums):
    """P(mean > 0) given exact sums of unclamped changes."""
    return stats.norm.cdf(sums / np.sqrt(n + 1))


seen = {
    f"ε = {epsilon:g}": np.mean(np.mean(draws[place] > 0, axis=-1) > 0.95, axis=-1)
    for place, epsilon in enumerate(epsilons)
}
seen["without noise"] = np.mean(probability_if_exact(changes.sum(axis=-1)) > 0.95, axis=-1)
naive = np.mean(probability_if_exact(released[0]) > 0.95, axis=-1)
for name, shares in seen.items():
    print(f"{name:14}", dict(zip(effects, shares.round(2).tolist(), strict=True)))
print("naive, ε = 0.3", dict(zip(effects, naive.round(2).tolist(), strict=True)))

# %% thumbnail=true alt="The share of studies that see the effect against its size: the curve without noise rises first, that of ε = 1 a little later, and that of ε = 0.3 much later. The naive reader at ε = 0.3 sees effects in a fifth of the studies where there are none."
figure, axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
looks = {"without noise": ("#404040", "D"), "ε = 1": ("#1f6fb4", "o"), "ε = 0.3": ("#56b4e9", "^")}
for name, (colour, mark) in looks.items():
    axes.plot(effects, seen[name], color=colour, marker=mark, label=name)
axes.plot(effects, naive, color="#d95f02", marker="s", linestyle="--", label="ε = 0.3, naive")
axes.axhline(0.05, color="0.6", linewidth=1, linestyle=":")
axes.set(xlabel="true effect, in standard deviations", ylabel="share of studies that see it", ylim=(0, 1.03))
axes.legend(frameon=False, loc="lower right")
plt.show()

# %% [markdown]
# ## Results
#
# * Without an effect, about one study in twenty sees one, as the limit of 0.95 promises. The naive reader at ε = 0.3 is
#   misled
#   several times as often: what looks like power is noise.
# * At ε = 1 an effect of 0.4 is seen nearly as often as without noise. At ε = 0.3 it seldom is: a larger effect is needed, or
#   more patients, as the noise does not grow with n.

# %%
error = np.sqrt(0.05 * 0.95 / repeats)
for name in looks:
    assert seen[name][0] < 0.05 + 4 * error, name
assert naive[0] > 0.05 + 3 * error
assert np.all(seen["ε = 1"] >= seen["ε = 0.3"] - 2 * np.sqrt(0.5 / repeats))
assert seen["without noise"][2] > 0.9
assert seen["ε = 1"][2] > 0.8
assert seen["ε = 0.3"][2] < 0.5

# %% [markdown]
# ## A closer look at one study
#
# Each posterior can be examined by itself.

# %%
print(posterior[0])
