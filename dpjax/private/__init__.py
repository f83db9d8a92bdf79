"""The data holder's job: publishing posterior draws under differential privacy, and accounting for it."""

from dpjax.private import accounting, noise
from dpjax.private.budget import Budget
from dpjax.private.composition import noise_multiplier_for
from dpjax.private.draws import Diagnostics, PrivateDraws
from dpjax.private.hmc import dp_hmc, hmc
from dpjax.private.kernel import PrivateKernel
from dpjax.private.ledger import BudgetExceeded, Ledger, PrivacySpent
from dpjax.private.planning import Plan, plan
from dpjax.private.query import Query
from dpjax.private.random_walk import dp_penalty, rwmh
from dpjax.private.sample import sample
from dpjax.private.schedules import halton_steps
from dpjax.private.sgld import dp_sgld, largest_langevin_noise
from dpjax.private.sgnht import dp_sgnht
from dpjax.private.target import Target, model_target, target

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Diagnostics",
    "Ledger",
    "Plan",
    "PrivacySpent",
    "PrivateDraws",
    "PrivateKernel",
    "Query",
    "Target",
    "accounting",
    "dp_hmc",
    "dp_penalty",
    "dp_sgld",
    "dp_sgnht",
    "halton_steps",
    "hmc",
    "largest_langevin_noise",
    "model_target",
    "noise",
    "noise_multiplier_for",
    "plan",
    "rwmh",
    "sample",
    "target",
]
