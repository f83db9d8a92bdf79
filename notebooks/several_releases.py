# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Several releases of the same people
#
# A clinic has published twice about the same 500 patients. First came a table of age group by smoking. Later, with less
# noise, came the number of smokers, and the number of visits in all. Each release alone leaves much uncertainty. Together
# they are more informative, because they concern the same people.

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
# A patient has an age group, smokes or not with a chance that depends on it, and makes visits at a rate that depends on both.
# It is written in NumPyro; visits are clamped to 20 by the statistic, not by the model.


# %%
def clinic(n):
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
    smoking = numpyro.sample("smoking", dist.Normal(-0.5, 1.0).expand([3]).to_event(1))
    level = numpyro.sample("level", dist.Normal(0.5, 0.5))
    of_smoking = numpyro.sample("of_smoking", dist.Normal(0.0, 0.5))
    with numpyro.plate("patients", n):
        age = numpyro.sample("age", dist.Categorical(share))
        smokes = numpyro.sample("smokes", dist.Bernoulli(logits=smoking[age]))
        numpyro.sample("visits", dist.Poisson(jnp.exp(level + of_smoking * smokes)))


n = 500
model = dpjax.from_numpyro(clinic, records=("age", "smokes", "visits"))

# %% [markdown]
# ## The releases
#
# Computed from simulated patients, whose parameters are known here. A statistic is a function of one record; each release has its
# own, and its own noise.


# %%
def age_by_smoking(record):
    """Six counts."""
    return jax.nn.one_hot(2 * record["age"] + record["smokes"].astype(int), 6, dtype=float)


def smokers_and_visits(record):
    """Smokers, their visits, and all visits; visits are clamped to 20."""
    visits = jnp.minimum(record["visits"], 20).astype(float)
    smokes = record["smokes"].astype(float)
    return jnp.stack([smokes, smokes * visits, visits])


truth = {
    "share": jnp.array([0.5, 0.3, 0.2]),
    "smoking": jnp.array([-1.2, -0.4, 0.2]),
    "level": jnp.array(0.4),
    "of_smoking": jnp.array(0.5),
}
record_key, first_key, second_key = jax.random.split(jax.random.key(3), 3)
patients = model.sample_records(record_key, truth, n)
first_design = dpjax.Release(jnp.zeros(6), dpjax.Laplace(12.0), age_by_smoking, n)
second_design = dpjax.Release(jnp.zeros(3), dpjax.Laplace(4.0), smokers_and_visits, n)
first = first_design.sample(first_key, patients)
second = second_design.sample(second_key, patients)
both = dpjax.joint(first, second)
print("table:", first.value.round(1), " later:", second.value.round(1))

# %% [markdown]
# ## Three posteriors
#
# The same model, given either release and given both.

# %%
given = {"the table": first, "the later release": second, "both": both}
answers = {}
for place, (name, release) in enumerate(given.items()):
    options = {"num_warmup": 500, "num_samples": 1_000, "progress": False}
    answers[name] = dpjax.sample(jax.random.fold_in(jax.random.key(4), place), model, release, **options)
posterior = answers["both"]

# %% thumbnail=true alt="Intervals of the log odds to smoke in three age groups and of the effect of smoking on visits: those from the table alone know nothing of visits, those from the later release little of age groups, and those from both are the narrowest."
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
dpjax.plot.forest(answers, names=["smoking", "of_smoking"], axes=axes)
true_values = [*np.asarray(truth["smoking"]), float(truth["of_smoking"])]
axes.plot(true_values, range(4), "|", color="#404040", markersize=24, label="truth")
axes.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()


# %% [markdown]
# ## What each adds
#
# The table has no information about visits, so that the effect of smoking on them keeps its prior. The later release has the
# number of smokers, but not their age. The joint posterior is narrower than either for smoking, and as narrow as the later one
# for visits.


# %%
def width(answer, name):
    """The 90 % width of each entry of a parameter."""
    low, high = np.quantile(answer.draws[name], [0.05, 0.95], axis=(0, 1))
    return np.atleast_1d(high - low)


for name in ("smoking", "of_smoking"):
    print(name, {label: width(answer, name).round(2).tolist() for label, answer in answers.items()})
prior_width = 2 * 1.645 * 0.5
assert abs(width(answers["the table"], "of_smoking")[0] / prior_width - 1) < 0.15
assert width(posterior, "of_smoking")[0] < 0.6 * prior_width
alone = [width(answers[name], "smoking") for name in ("the table", "the later release")]
assert np.all(width(posterior, "smoking") < np.minimum(*alone))
assert abs(width(posterior, "of_smoking")[0] / width(answers["the later release"], "of_smoking")[0] - 1) < 0.2

# %%
for name, value in truth.items():
    low, high = np.quantile(posterior.draws[name], [0.005, 0.995], axis=(0, 1))
    assert np.all((low < value) & (value < high)), name

# %% [markdown]
# ## Do they agree?
#
# If one release were of other people, or its noise other than stated, the joint
# posterior would predict one of them badly.

# %% alt="Nine bars of predicted releases, six for the table and three for the later release, all with the released number inside."
labels = [f"{age} {kind}" for age in ("young", "middle", "old") for kind in ("no", "yes")]
posterior.plot_predictive(jax.random.key(5), labels=[*labels, "smokers", "their visits", "visits"])
plt.show()

# %% [markdown]
# Privacy costs add up too: publishing twice about the same people spends both budgets. `dpjax.joint` analyses such
# releases; their joint cost has to be computed by the publisher.
