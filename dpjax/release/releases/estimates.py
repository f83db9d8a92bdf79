"""Estimates of several units, each with its own standard error."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_positive, fail, plain, read_numbers
from dpjax.mechanisms import Gaussian
from dpjax.release.local import LocalRelease
from dpjax.release.microdata import Microdata

__all__ = ["estimates"]


@names_arguments
def estimates(values: Any, standard_errors: Any, field: str = "y") -> LocalRelease | Microdata:
    """The release of one direct estimate for each unit, such as an area, Normal around the truth.

    With a regression of the true values on covariates of the units it is the model of Fay and Herriot (1979).

    Parameters
    ----------
    values : [n]
        The estimates; NaN of a unit without one.
    standard_errors : [] or [n]
        The standard errors that were published with them, taken as known; not read of a unit without an estimate.
    field
        The name of the record field that was estimated.

    Returns
    -------
    LocalRelease | Microdata
        Through `dpjax.Gaussian` with one standard deviation for each record. `Microdata` if a unit has no estimate.

    Raises
    ------
    TypeError, ValueError
        If they are no numbers of these shapes, no unit has an estimate, or one with an estimate has no standard error
        above 0.

    Notes
    -----
    Whether a unit has an estimate must not depend on the estimate.

    Intervals of 95 % have standard errors of their width over 3.92. Privacy noise on an estimate adds its variance.

    Examples
    --------
    >>> import dpjax
    >>> areas = dpjax.releases.estimates([3.1, 2.4, 4.0], [0.4, 0.2, 0.9])
    >>> areas.channel.scale.shape
    (3,)
    """
    remedy = "Pass one estimate for each unit, NaN where there is none."
    array = read_numbers("values", plain(values), "numbers [n]", remedy).astype(float)
    if array.ndim != 1 or np.all(np.isnan(array)):
        fail("values", f"shape {list(array.shape)}", "numbers [n], at least one of them not NaN", remedy)
    errors = read_numbers("standard_errors", plain(standard_errors), "numbers [] or [n]", "Pass one for each estimate.")
    if errors.shape not in ((), array.shape):
        remedy = "Pass one for each estimate."
        fail("standard_errors", f"shape {list(errors.shape)}", f"shape [] or {list(array.shape)}", remedy)
    absent = np.isnan(array)
    spread = np.where(absent, 1.0, errors) if errors.ndim else errors
    check_positive("standard_errors", spread, "Pass NaN in the place of an estimate without one.")
    channel = Gaussian(jnp.asarray(spread, jnp.result_type(float)) if errors.ndim else float(errors))
    return (
        Microdata({field: (array, channel)}, {field: absent})
        if absent.any()
        else LocalRelease(jnp.asarray(array), channel, field)
    )
