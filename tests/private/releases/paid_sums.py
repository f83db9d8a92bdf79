"""Records whose sums tests release, and the parts that they release them with."""

import numpy as np

from dpjax import private, statistics
from dpjax.private.people import EACH_RECORD
from dpjax.private.releases.exact_sum import sum_on_grid
from dpjax.private.releases.layout import lay_out
from dpjax.private.releases.records import read_batches

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


def release(statistic=GRAM, records=None, budget=BUDGET, people=None, **options):
    """A release charged to a ledger of its own, of records that are another person's each."""
    held = RECORDS if records is None else records
    return private.release(private.Ledger(budget), statistic, held, people=people, **options)


def read(records, statistic=GRAM, people=None, noise=None, *, columns=None, dtypes=None, layout=None):
    """The batches that a release of records reads."""
    who = EACH_RECORD if people is None else people
    layout = layout or lay_out(records, statistic, columns, dtypes, who)
    return read_batches(records, layout, who, noise)


def exact(records, statistic, step, norm=2, **options):
    """The sum before the noise, of records that are another person's each."""
    layout = lay_out(records, statistic, None, options.get("dtypes"), EACH_RECORD)
    return sum_on_grid(statistic, read_batches(records, layout, EACH_RECORD, seeded()), step, layout.fixed, norm=norm)
