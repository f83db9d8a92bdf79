# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Small areas: noisy counts and a regression
#
# Forty districts each publish how many people were treated for asthma, with added noise. Counts of small districts are mostly
# noise. A regression on public covariates borrows strength across districts.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax

# %% [markdown]
# ## The districts
#
# Population (in thousands) and air pollution are public. Cases are made up from a rate that grows with pollution and
# varies from district to district. Each count is released with discrete Laplace noise of scale 4 (ε = 1/4 for one
# patient).

# %%
DISTRICTS, SCALE = 40, 4.0
rng = np.random.default_rng(7)
population = np.round(rng.gamma(1.2, 10.0, DISTRICTS) + 0.5, 1)
pollution = rng.normal(size=DISTRICTS)
truth = {"level": 0.7, "slope": 0.4, "spread": 0.3}
rates = np.exp(rng.normal(truth["level"] + truth["slope"] * pollution, truth["spread"]))
cases = rng.poisson(population * rates)
mechanism = dpjax.DiscreteLaplace(SCALE)
released = np.asarray(mechanism.sample(jax.random.key(1), jnp.asarray(cases, float)), int)
print(f"{np.sum(released < 0)} released counts are negative; {np.sum(cases < 10)} districts have fewer than ten cases")
assert np.sum(released < 0) >= 1

# %% [markdown]
# ## The model
#
# A Poisson–lognormal regression: the log rate of a district is Normal about a line in pollution. The districts are the
# records, one count each; their log rates are parameters. dpjax detects that these depend on `level`, `slope` and
# `spread`, and also moves them in standardised form: no rewriting is needed.


# %%
def asthma(population, pollution):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 0.5))
    spread = numpyro.sample("spread", dist.HalfNormal(0.5))
    log_rate = numpyro.sample("log_rate", dist.Normal(level + slope * pollution, spread).to_event(1))
    with numpyro.plate("districts", len(population)):
        numpyro.sample("cases", dist.Poisson(population * jnp.exp(log_rate)))


known = {"population": jnp.asarray(population, float), "pollution": jnp.asarray(pollution, float)}
model = dpjax.from_numpyro(asthma, records=["cases"], **known)
release = dpjax.LocalRelease(released, mechanism, field="cases")

# %% [markdown]
# ## The posterior
#
# Counts behind their noise are drawn exactly within random windows; the regression moves given them.

# %%
posterior = dpjax.sample(jax.random.key(2), model, release, num_warmup=1_000, num_samples=1_500, progress=False)
draws = {name: posterior.draws[name] for name in truth}
for name, leaf in draws.items():
    low, high = np.quantile(leaf, [0.05, 0.95])
    print(
        f"{name:7} {leaf.mean():6.2f} [{low:.2f}, {high:.2f}], true {truth[name]}; effective draws {dpjax.diagnostics.ess_bulk(leaf):.0f}"
    )
    assert dpjax.diagnostics.ess_bulk(leaf) > 100
    assert np.quantile(leaf, 0.005) < truth[name] < np.quantile(leaf, 0.995)

# %% [markdown]
# ## A rate for each district
#
# The released count over the population is a poor estimate where few people live. The posterior shrinks small districts towards
# the line, and leaves large ones near their counts.

# %% thumbnail=true alt="Rates of forty districts ordered by population. Released counts over population scatter widely for small districts, some below zero; posterior intervals are all above zero, hold most of the true rates, and narrow as districts grow."
order = np.argsort(population)
drawn = np.exp(posterior.draws["log_rate"]).reshape(-1, DISTRICTS)[:, order]
naive, true_rates = released[order] / population[order], rates[order]
low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
places = np.arange(DISTRICTS)
axes.axhline(0, color="0.8", linewidth=1)
axes.vlines(places, low, high, color="#1f6fb4", linewidth=3, label="posterior, 90 %")
axes.plot(places, true_rates, "_", color="#404040", markersize=9, label="true rate")
axes.plot(places, naive, "s", color="0.55", markersize=4, label="released count / population")
axes.set(xlabel="district, from the smallest to the largest", ylabel="cases per thousand")
axes.legend(frameon=False, ncols=3)
plt.show()

# %%
covered = np.mean((low < true_rates) & (true_rates < high))
error = {"naive": naive - true_rates, "posterior mean": drawn.mean(axis=0) - true_rates}
error = {way: np.sqrt(np.mean(each**2)) for way, each in error.items()}
print(f"90 % intervals hold {covered:.0%} of the true rates; root mean squared errors", end=" ")
print({way: round(float(each), 2) for way, each in error.items()})
assert covered > 0.9 - 3 * np.sqrt(0.09 / DISTRICTS)
assert error["posterior mean"] < 0.7 * error["naive"]

# %% [markdown]
# ## Noise ignored
#
# A regression that ignores the noise has to explain it by differences between districts. It cannot use negative counts at
# all; set to zero, they bias the small districts upwards. If noise is as large as a count, account for it.
