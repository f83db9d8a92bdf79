# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Publishing posterior draws under differential privacy
#
# A hospital association holds 100,000 records of patients: age, number of earlier stays, and whether the patient came
# back within a month. It wants to publish a model of readmission, with its uncertainty, as draws from a posterior.
# Every draw of an ordinary sampler is computed from all records, and may reveal something about one of them.
#
# ## The threat model
#
# * *The adversary* reads everything that is published, knows the model, the settings and this code, and may know every
#   record but one. It wants to learn whether that one patient is in the data, or what the record says.
# * *The data holder* is trusted: it has the records, runs the code, and can read the memory of its own machine.
# * *What is published*: the draws, the settings, and the privacy that was spent. Nothing else.

# %%
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
from numpyro import distributions as dist

import dpjax
from dpjax import private

jax.config.update("jax_enable_x64", True)  # for accuracy: what is promised holds in float32 as well

# %% [markdown]
# ## The model and the records
#
# A NumPyro model of one plate. Age is in decades from 60, the number of earlier stays is counted from 1 and capped at
# 2 above it. The records are made up, so that this notebook can compare with the truth; yours are not.


# %%
def readmission(n, age, stays, readmitted=None):
    intercept = numpyro.sample("intercept", dist.Normal(-1.0, 2.0))
    of_age = numpyro.sample("of_age", dist.Normal(0.0, 1.0))
    of_stays = numpyro.sample("of_stays", dist.Normal(0.0, 1.0))
    with numpyro.plate("patients", n):
        logits = intercept + of_age * age + of_stays * stays
        numpyro.sample("readmitted", dist.Bernoulli(logits=logits), obs=readmitted)


def make_up(rng, n, intercept, of_age, of_stays):
    age = np.clip(rng.normal(0.0, 1.2, n), -3.0, 3.0)
    stays = np.minimum(rng.poisson(0.8, n), 3) - 1.0
    chance = 1 / (1 + np.exp(-(intercept + of_age * age + of_stays * stays)))
    return {"readmitted": rng.binomial(1, chance)}, {"age": age, "stays": stays}


truth = {"intercept": -1.5, "of_age": 0.25, "of_stays": 0.45}
records, covariates = make_up(np.random.default_rng(1), 100_000, **truth)
confidential = dpjax.private.numpyro_target(readmission, records, covariates)

# %% [markdown]
# ## The promise
#
# (ε, δ)-differential privacy, for the replacement of one patient: the number of patients is public. There is no
# default, because what to promise is a decision about the people in the data. δ is well below one over their number.

# %%
budget = private.Budget(epsilon=8.0, delta=1e-7, neighbours="replace-one")

# %% [markdown]
# ## Settings that cost nothing
#
# Step sizes, clip bounds and starting points that were tuned on the records would reveal something about them. From other hospitals'
# reports we know that about one in six patients comes back, older ones and those with earlier stays more often.
# Made-up patients of that kind are enough to choose the settings, and the plan states its assumptions.
#
# It also warns: with this budget there are some twenty independent draws of three parameters, in however many iterations.
# That is enough for a mean and a rough width, and not for a tail. One chain spends the fewest of them on its warm-up.

# %%
pilot = dpjax.private.numpyro_target(readmission, *make_up(np.random.default_rng(2), 100_000, -1.4, 0.2, 0.4))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    plan = private.plan(
        jax.random.key(3),
        pilot,
        source="synthetic",
        num_records=100_000,
        budget=budget,
        num_chains=1,
        num_iterations=600,
    )
print(*(warning.message for warning in told))
print(plan)

# %% [markdown]
# ## The run
#
# The chains see the records through noisy sums only. The ledger is charged for each sum before it is computed, and
# what is computed from the released sums costs nothing more. `noise.secure` takes its randomness from the operating
# system: two runs never agree, and no key can be leaked.

# %%
ledger = private.Ledger(budget)
kernel = private.dp_hmc(confidential, private.noise.secure, **plan.settings())
starts = plan.starts(jax.random.key(4), 1)
posterior = private.sample(jax.random.key(5), kernel, starts, ledger)
spent = posterior.privacy_spent()
print(budget)  # what may be quoted as guaranteed
print(spent)
assert spent.epsilon <= budget.epsilon

# %% [markdown]
# The budget is spent; the picture says on what.

# %% alt="Bars of the privacy that each kind of query cost, one beginning where the other ends, up to the budget of 8."
dpjax.plot.budget(ledger)
plt.show()

# %% [markdown]
# A second run of the same ledger is refused, before it reads a record.

# %%
try:
    private.sample(jax.random.key(6), kernel, starts, ledger)
except ValueError as refusal:
    print(refusal)
else:
    raise AssertionError("a spent budget was spent again")

# %% [markdown]
# ## What was spent for accuracy
#
# The records are made up, so we may look at the posterior without privacy, which is confidential otherwise. The first draws of
# the private chain, as many as the plan predicts, are the warm-up and are left out.

# %% thumbnail=true alt="For each of three coefficients the distribution of the published draws over that of the posterior without privacy: both lie in the same place, and the published one is rougher."
trajectory = {name: plan.settings()[name] for name in ("step_size", "num_leapfrog", "mass", "scale")}
exact_kernel = private.hmc(confidential, **trajectory)


@jax.jit
def exact_chain(key, position):
    def step(state, index):
        state, _ = exact_kernel.step(jax.random.fold_in(key, index), state)
        return state, state.position

    return jax.lax.scan(step, exact_kernel.init(position), jnp.arange(1_000))[1]


exact = exact_chain(jax.random.key(7), jax.tree.map(lambda leaf: leaf[0], starts))
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
for axis, (name, value) in zip(axes, truth.items(), strict=True):
    axis.hist(np.asarray(exact[name])[200:], bins=30, density=True, histtype="step", label="without privacy")
    axis.hist(
        np.ravel(posterior.draws[name][:, plan.num_warmup :]), bins=30, density=True, histtype="step", label="published"
    )
    axis.axvline(value, color="#404040", linewidth=0.8, label="truth")
    axis.set_xlabel(name)
axes[0].set_ylabel("density")
axes[0].legend(frameon=False)
plt.show()

# %% [markdown]
# ## What is guaranteed
#
# This holds for whatever is computed from the published draws, with whatever knowledge besides. Had one patient's record
# been different, any conclusion would have been reached with a probability that differs by a factor of at most e^ε, up to
# δ. This holds for the whole of what the ledger was charged for. It does not depend on the model being correct, on the
# chains having converged, or on secrecy of the settings.
#
# ## What is not
#
# * That the draws are those of the posterior. If log-likelihood ratios are clipped, the chains have another
#   distribution. The data holder sees how many were, below; that number is computed from the records and must not be
#   published.
# * That nothing is learnt about a patient: what follows from the statistics of all patients is learnt with or without
#   the patient's record.
# * Nothing is promised if the run used `noise.jax`, whose key gives the noise away, or if the settings came from the
#   records. Nor is it if the records of one patient are many rows, or if the machine is read by others.
# * A second look. Any further run, for another model or with other settings, is charged too, and the costs compose.

# %%
print("for the data holder only:", posterior.not_private)
