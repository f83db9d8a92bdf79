# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Weekly counts with noise and gaps
#
# An emergency department publishes visits by week with Laplace noise, and withholds numbers below a threshold. A random walk
# of the weekly rate separates the season from the noise, and fills the gaps with what their absence says.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax

# %% [markdown]
# ## What is published
#
# One year of made-up visits with a peak in winter, Laplace noise of scale 4, and a threshold of 15.

# %%
WEEKS, SCALE, THRESHOLD = 52, 4.0, 15.0
rng = np.random.default_rng(6)
week = np.arange(WEEKS)
rate = np.exp(2.9 + 0.9 * np.cos(2 * np.pi * (week - 26) / WEEKS) + 0.1 * rng.normal(size=WEEKS).cumsum() / 2)
visits = rng.poisson(rate)
noisy = visits + rng.laplace(0.0, SCALE, WEEKS)
published = np.where(noisy >= THRESHOLD, noisy.round(2), np.nan)
print(f"{np.sum(np.isnan(published))} of {WEEKS} weeks are withheld")

# %% [markdown]
# ## Model and posterior
#
# The logarithm of the rate is a random walk. Its steps are parameters; the weeks are the records. A withheld week says that
# its noisy number was below 15.


# %%
def season(week, visits=None):
    level = numpyro.sample("level", dist.Normal(3.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(0.3))
    with numpyro.plate("steps", WEEKS):
        step = numpyro.sample("step", dist.Normal(0.0, 1.0))
    log_rate = numpyro.deterministic("log_rate", level + spread * jnp.cumsum(step))
    with numpyro.plate("weeks", len(week)):
        numpyro.sample("visits", dist.Poisson(jnp.exp(log_rate[week])), obs=visits)


model = dpjax.from_numpyro(season, records=["visits"], week=week)
release = dpjax.releases.thresholded_units(published, dpjax.Laplace(SCALE), threshold=THRESHOLD, field="visits")
posterior = dpjax.sample(jax.random.key(1), model, release, progress=False)
print(posterior.plan.describe())
print(posterior.summary(names=["level", "spread"]))

# %% thumbnail=true alt="Weekly visits over one year. A band of posterior rates rises to a peak in winter and falls again; it holds the true rate in nearly all weeks, also in summer, where no numbers are published and ticks at the foot mark the gaps."
low, middle, high = np.exp(np.quantile(posterior.draws["log_rate"], [0.05, 0.5, 0.95], axis=(0, 1)))
gaps = np.isnan(published)
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
axes.fill_between(week, low, high, color="#1f6fb4", alpha=0.25, linewidth=0, label="posterior rate, 90 %")
axes.plot(week, middle, color="#1f6fb4")
axes.plot(week, rate, color="#404040", linestyle="--", linewidth=1, label="true rate")
axes.plot(week, published, "s", color="0.55", markersize=4, label="published")
axes.plot(week[gaps], np.zeros(gaps.sum()), "|", color="0.55", markersize=9, label="withheld")
axes.set(xlabel="week", ylabel="visits", ylim=(-2, None))
axes.legend(frameon=False, ncols=2)
plt.show()
covered = np.mean((low < rate) & (rate < high))
covered_gaps = np.mean(((low < rate) & (rate < high))[gaps])
print(f"the band holds the true rate in {covered:.0%} of the weeks, and in {covered_gaps:.0%} of the gaps")
assert covered > 0.75

# %% [markdown]
# ## Gaps left out
#
# If withheld weeks are dropped, as if they were missing for no reason, the rates of quiet weeks come out too high. What is left
# there are the weeks whose noise was large.

# %%
known = ~gaps
dropped_model = dpjax.from_numpyro(season, records=["visits"], week=week[known])
dropped_release = dpjax.LocalRelease(published[known], dpjax.Laplace(SCALE), field="visits")
dropped = dpjax.sample(jax.random.key(2), dropped_model, dropped_release, progress=False)
quiet = rate < THRESHOLD
errors = {
    name: float(np.mean(np.exp(np.mean(way.draws["log_rate"], axis=(0, 1)))[quiet] / rate[quiet]) - 1)
    for name, way in {"gaps used": posterior, "gaps dropped": dropped}.items()
}
print("mean error of the rates of quiet weeks:", {name: f"{error:+.0%}" for name, error in errors.items()})
assert abs(errors["gaps used"]) < errors["gaps dropped"]
