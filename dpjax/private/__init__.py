"""The data holder's job: publishing posterior draws under differential privacy, and accounting for it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpjax._util.lazy import lazy_names
from dpjax.private import accounting, noise
from dpjax.private.accounting import events
from dpjax.private.accounting.composition import noise_multiplier_for
from dpjax.private.accounting.ledger import BudgetExceeded, Ledger, PrivacySpent
from dpjax.private.accounting.query import Budget, Query
from dpjax.private.accounting.remaining import Remaining
from dpjax.private.kernels.base import KernelInfo, KernelState, NotPrivate, PrivateKernel, make_kernel
from dpjax.private.kernels.hmc import dp_hmc, hmc
from dpjax.private.kernels.random_walk import dp_penalty, rwmh
from dpjax.private.kernels.schedules import halton_steps
from dpjax.private.kernels.sgld import dp_sgld, largest_langevin_noise
from dpjax.private.kernels.sgnht import dp_sgnht
from dpjax.private.planning.design import Design, design
from dpjax.private.planning.plan import Plan, plan
from dpjax.private.releases.release import release
from dpjax.private.runs.draws import Diagnostics, PrivateDraws
from dpjax.private.runs.sample import sample
from dpjax.private.sums.clipped import ClippedSum, clipped_gradients, clipped_ratios
from dpjax.private.targets.target import Target, model_target, target

if TYPE_CHECKING:
    numpyro_target: Callable[..., Target]
else:
    __getattr__, __dir__ = lazy_names(__name__, {"dpjax.adapters.numpyro": "numpyro_target"})

__all__ = [
    "Budget",
    "BudgetExceeded",
    "ClippedSum",
    "Design",
    "Diagnostics",
    "KernelInfo",
    "KernelState",
    "Ledger",
    "NotPrivate",
    "Plan",
    "PrivacySpent",
    "PrivateDraws",
    "PrivateKernel",
    "Query",
    "Remaining",
    "Target",
    "accounting",
    "clipped_gradients",
    "clipped_ratios",
    "design",
    "dp_hmc",
    "dp_penalty",
    "dp_sgld",
    "dp_sgnht",
    "events",
    "halton_steps",
    "hmc",
    "largest_langevin_noise",
    "make_kernel",
    "model_target",
    "noise",
    "noise_multiplier_for",
    "numpyro_target",
    "plan",
    "release",
    "rwmh",
    "sample",
    "target",
]
