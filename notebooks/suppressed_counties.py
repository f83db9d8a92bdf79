# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Suppressed county counts: a regression over all counties
#
# A health agency publishes deaths by county, and withholds counts below ten. A regression over the counties that are left
# is one over large counties, and over those with many deaths. All counties enter here, each with what its entry says.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import dpjax

# %% [markdown]
# ## What is published
#
# Two hundred counties lie in eight states. The data are made up: the rate of deaths rises with poverty, and differs between
# states. Most counties are small, so that more than half of the counts are withheld.

# %%
COUNTIES, STATES, LIMIT = 200, 8, 10
rng = np.random.default_rng(4)
counties = pd.DataFrame(
    {
        "state": rng.integers(0, STATES, COUNTIES),
        "poverty": rng.normal(15.0, 5.0, COUNTIES).clip(3.0, 35.0).round(1),
        "population": rng.lognormal(9.6, 1.0, COUNTIES).round(-2),
    }
)
true_slope, true_spread = 0.05, 0.3
state_effect = rng.normal(0.0, true_spread, STATES)
rates = 3e-4 * np.exp(true_slope * (counties["poverty"] - 15.0) + state_effect[counties["state"]])
true_rate = 3.0 * np.exp(true_slope * (counties["poverty"].mean() - 15.0))
deaths = rng.poisson(counties["population"] * rates)
published = np.where(deaths < LIMIT, np.nan, deaths)
print(f"{np.mean(np.isnan(published)):.0%} of the counts are withheld")
counties.assign(deaths=published).head()

# %% [markdown]
# ## Model and posterior
#
# The model is one line. `suppressed_units` says what an empty entry means. Withheld counts are not imputed: each contributes
# the probability that the model gives to 0, 1, ..., 9. If zeros were published, `least=1` would say so.

# %%
text = "deaths ~ poverty + (1 | state) + offset(log(population / 10000))"
model = dpjax.models.formula(text, counties, family="poisson")
release = dpjax.releases.suppressed_units(published, limit=LIMIT, field="deaths")
posterior = dpjax.sample(jax.random.key(1), model, release, progress=False)
print(posterior.plan.describe())
print(posterior.summary(names=["poverty", "1|state_sigma", "Intercept"]))

# %% [markdown]
# ## What other ways give
#
# The same model with the counties that are left, and with 5 in place of each withheld count.

# %%
kept = ~np.isnan(published)
ways = {"all counties, as published": posterior}
for name, rows, counts in (
    ("published counties alone", kept, published[kept]),
    ("5 in place of withheld counts", np.ones(COUNTIES, bool), np.where(kept, published, 5)),
):
    alone = dpjax.models.formula(text, counties[rows].reset_index(drop=True), family="poisson")
    exact = dpjax.Microdata({"deaths": (counts.astype(int), dpjax.Exact())})
    ways[name] = dpjax.sample(jax.random.key(2), alone, exact, progress=False)
middle = counties["poverty"].mean()
quantities = {
    "slope of poverty": (lambda draws: draws["poverty"], true_slope),
    "deaths per 10,000 at mean poverty": (
        lambda draws: np.exp(draws["Intercept"] + draws["poverty"] * middle),
        true_rate,
    ),
}
intervals = {
    quantity: {name: np.quantile(read(way.draws), [0.05, 0.5, 0.95]) for name, way in ways.items()}
    for quantity, (read, _) in quantities.items()
}
for quantity, (_, truth) in quantities.items():
    print(f"{quantity}, true {truth:.3f}")
    for name, (low, median, high) in intervals[quantity].items():
        print(f"  {name:30} {median:.3f} [{low:.3f}, {high:.3f}]")
    low, _, high = intervals[quantity]["all counties, as published"]
    assert low < truth < high
rates_of = intervals["deaths per 10,000 at mean poverty"]
assert rates_of["5 in place of withheld counts"][0] > true_rate
assert rates_of["published counties alone"][1] > rates_of["all counties, as published"][1]
assert intervals["slope of poverty"]["5 in place of withheld counts"][2] < true_slope

# %% thumbnail=true alt="Posterior intervals of two quantities for three ways of reading the counts. Those from all counties hold the true values. The rate from the published counties alone is higher. With 5 in place of withheld counts the slope is too low and the rate too high."
figure, panels = plt.subplots(1, 2, figsize=(9, 2.2), layout="constrained", sharey=True)
for axes, (quantity, (_, truth)) in zip(panels, quantities.items(), strict=True):
    for place, (low, median, high) in enumerate(reversed(intervals[quantity].values())):
        colour = "#1f6fb4" if place == len(ways) - 1 else "#d95f02"  # blue: withheld counts are accounted for
        axes.plot([low, high], [place, place], color=colour, linewidth=3)
        axes.plot(median, place, "o", color=colour)
    axes.axvline(truth, color="#404040", linestyle="--", linewidth=1, label="truth")
    axes.set_yticks(range(len(ways)), list(reversed(ways)))
    axes.set(xlabel=f"{quantity}, 90 % interval", ylim=(-0.6, len(ways) - 0.4))
panels[1].legend(frameon=False)
plt.show()

# %% [markdown]
# ## States
#
# The effects of the states, in a forest picture by name.

# %% alt="Posterior intervals of the effects of eight states, one below the other, on both sides of zero."
posterior.plot_forest(names=["1|state"])
plt.show()

# %% [markdown]
# ## The withheld counts themselves
#
# Completed data sets have a count for each county. They are drawn given what was published, never above 9.

# %%
completed = posterior.completed(jax.random.key(3), 200)
drawn = np.asarray(completed.records["deaths"])
withheld = drawn[:, ~kept]
assert withheld.min() >= 0
assert withheld.max() < LIMIT
assert np.all(drawn[:, kept] == published[kept])
totals = drawn.sum(axis=1)
print(f"deaths in all: {np.quantile(totals, 0.05):.0f} to {np.quantile(totals, 0.95):.0f}; true {deaths.sum()}")
assert np.quantile(totals, 0.005) <= deaths.sum() <= np.quantile(totals, 0.995)
