"""Noisy measurement files of the 2020 Census, as one release over a table of areas and categories.

The format is that of the Census Bureau's files for redistricting (P.L. 94-171), doi:10.7910/DVN/5LAVKV, also found at
https://registry.opendata.aws/census-2020-pl94-nmf with its technical documentation. Parquet files, a folder for each
geographic level, have one row for each query of each area. The columns are `geocode`, `query_name`, one for each
attribute that says how the query codes it, `query_shape`, `value` and `variance`. Constraints have their `sign`, too.
"""

from dpjax.adapters.census.measurements import PL94_PERSON, PL94_UNIT, Histogram, Measurement
from dpjax.adapters.census.tables import NoisyMeasurements, read_noisy_measurements

__all__ = ["PL94_PERSON", "PL94_UNIT", "Histogram", "Measurement", "NoisyMeasurements", "read_noisy_measurements"]
