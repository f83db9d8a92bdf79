"""Records whose sums tests release, and the parts that they release them with."""

import numpy as np

from dpjax import private, statistics

RNG = np.random.default_rng(7)
RECORDS = {"x": RNG.normal(size=(300, 2)), "y": RNG.normal(size=300), "group": RNG.integers(0, 3, 300)}
BUDGET = private.Budget(1.0, 1e-6, "replace-one")
ADDED = private.Budget(1.0, 1e-6, "add-or-remove")
GRAM = statistics.gram([-2.0, -2.0], [2.0, 2.0], (-3.0, 3.0))
TOTAL, TABLE = statistics.total("y", -2.0, 2.0), statistics.cells("group", 3)
BOTH = statistics.stacked(TOTAL, TABLE)


def seeded(seed: int = 1) -> private.noise.Secure:
    """A source that gives the same noise again."""
    return private.noise.Secure(np.random.default_rng(seed).bytes)


def release(statistic=GRAM, records=None, budget=BUDGET, **options):
    """A release charged to a ledger of its own."""
    return private.release(private.Ledger(budget), statistic, RECORDS if records is None else records, **options)
