# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # A survey file with perturbed answers
#
# A survey publishes one row for each of 500 people. Whether they have a chronic illness was randomized, noise was added to
# their incomes, and some incomes are missing. Their well-being is in the file as it is. How is it related to both?

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax

# %% [markdown]
# ## The file
#
# It is simulated here, so that the true answers are known. A fifth of the people are ill, and the ill have lower incomes. Income
# is on a standardised logarithmic scale. Well-being is lower by 0.8 for the ill, and rises by 0.6 for each unit of income.

# %%
rng = np.random.default_rng(7)
n, truth = 500, {"ill": -0.8, "income": 0.6}
ill = rng.random(n) < 0.2
income = rng.normal(np.where(ill, -0.5, 0.2), 0.9)
wellbeing = 0.3 + truth["ill"] * ill + truth["income"] * income + rng.normal(0.0, 0.6, n)

# %% [markdown]
# Before the file was published, each answer about illness was replaced by the other one with probability 0.2. Normal noise of
# standard deviation 0.7 was added to each income. Every seventh person did not give an income.

# %%
reported_ill = np.where(rng.random(n) < 0.8, ill, ~ill).astype(int)
reported_income = income + rng.normal(0.0, 0.7, n)
reported_income[rng.random(n) < 1 / 7] = np.nan

# %% [markdown]
# ## The file taken as true
#
# Least squares on the complete rows compares people who are said to be ill with people who are said not to be. Each group contains
# many of the other, so that the difference shrinks. Noise in the incomes makes their slope shrink, too.


# %%
def least_squares(ill, income, wellbeing):
    """The coefficients of illness and income with their 95 % intervals [coefficient, (low, estimate, high)]."""
    design = np.column_stack([np.ones(len(ill)), ill, income])
    estimates, squares = np.linalg.lstsq(design, wellbeing, rcond=None)[:2]
    covariance = np.linalg.inv(design.T @ design) * squares / (len(ill) - 3)
    margins = 1.96 * np.sqrt(np.diag(covariance))
    return np.stack([estimates - margins, estimates, estimates + margins], axis=1)[1:]


complete = ~np.isnan(reported_income)
naive = least_squares(reported_ill[complete], reported_income[complete], wellbeing[complete])
confidential = least_squares(ill, income, wellbeing)

# %% [markdown]
# ## The release and the model
#
# `Microdata` names the channel of each column. `Exact` is that of what is known. The model is one of whole people, and does not know
# of the noise.

# %%
people = dpjax.Microdata(
    {
        "ill": (reported_ill, dpjax.RandomizedResponse(keep=0.8, num_categories=2)),
        "income": (reported_income, dpjax.Gaussian(0.7)),
        "wellbeing": (wellbeing, dpjax.Exact()),
    },
    missing={"income": ~complete},
)
print(dpjax.describe(people))


def survey(n):
    share = numpyro.sample("share", dist.Beta(1.0, 1.0))
    income_mean = numpyro.sample("income_mean", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    income_sd = numpyro.sample("income_sd", dist.LogNormal(0.0, 0.5))
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    noise = numpyro.sample("noise", dist.LogNormal(0.0, 0.5))
    with numpyro.plate("people", n):
        ill = numpyro.sample("ill", dist.Bernoulli(share))
        income = numpyro.sample("income", dist.Normal(income_mean[ill], income_sd))
        numpyro.sample("wellbeing", dist.Normal(coef[0] + coef[1] * ill + coef[2] * income, noise))


model = dpjax.from_numpyro(survey, records=["ill", "income", "wellbeing"])

# %% [markdown]
# ## The posterior
#
# True answers and incomes are imputed along with the parameters. Well-being helps to tell who is ill, as far as the model knows.

# %%
posterior = dpjax.sample(jax.random.key(1), model, people, num_samples=2_000)
print(posterior.summary(names=["share", "coef"]))
private = np.quantile(posterior.draws["coef"][..., 1:], [0.025, 0.5, 0.975], axis=(0, 1)).T

# %% [markdown]
# ## What the noise hides, and what it does not
#
# Read as it stands, the file says with much confidence that illness matters less than it does. With the noise in the model the
# intervals are wider, and cover the truth, which is dotted.

# %% thumbnail=true alt="Intervals of two coefficients. Those of the file taken as true are short and miss the truth, those of dpjax are wider and cover it, as do those of the confidential data."
figure, panels = plt.subplots(1, 2, figsize=(8, 2.4), layout="constrained", sharey=True)
ways = {"confidential data": (confidential, "0.3"), "file taken as true": (naive, "C1"), "dpjax": (private, "C0")}
for panel, (name, true), place in zip(panels, truth.items(), range(2), strict=True):
    for height, (intervals, colour) in enumerate(ways.values()):
        low, middle, high = intervals[place]
        panel.plot([low, high], [height, height], color=colour)
        panel.plot(middle, height, "o", color=colour)
    panel.axvline(true, color="k", linestyle=":", linewidth=1)
    panel.set(xlabel=f"coefficient of {name}, with its 95 % interval", ylim=(2.5, -0.5))
panels[0].set_yticks(range(3), ways)
plt.show()

for place, true in enumerate(truth.values()):
    assert not naive[place, 0] < true < naive[place, 2]
    assert private[place, 0] < true < private[place, 2]
