"""The data holder's job: publishing posterior draws under differential privacy, and accounting for it."""

from dpjax.private import accounting, noise
from dpjax.private.budget import Budget
from dpjax.private.ledger import BudgetExceeded, Ledger, PrivacySpent
from dpjax.private.query import Query

__all__ = ["Budget", "BudgetExceeded", "Ledger", "PrivacySpent", "Query", "accounting", "noise"]
