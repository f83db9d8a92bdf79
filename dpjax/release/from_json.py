"""Reading a release of any kind."""

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_function
from dpjax.base import Statistic
from dpjax.release import json
from dpjax.release.base import PrivateRelease
from dpjax.release.local import LocalRelease
from dpjax.release.microdata import Microdata
from dpjax.release.summed import Release


@names_arguments
def from_json(text: str, *, statistic: Statistic | None = None) -> PrivateRelease:
    """The release written by `to_json` of a `Release`, a `LocalRelease` or `Microdata`, whichever the text holds.

    Parameters
    ----------
    text
        JSON text in the schema of `dpjax.release.json`.
    statistic
        The function ``record -> [d]`` of a sum, if it is not one of `dpjax.statistics`.

    Raises
    ------
    TypeError, ValueError
        If the text is of another schema or version, or holds something unknown.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> dpjax.from_json(release.to_json()).mechanism.scale
    8.0
    """
    if statistic is not None:
        check_function("statistic", statistic, "of one record")
    kind = json.read(text)["kind"]
    if kind == "local-release":
        return LocalRelease.from_json(text)
    if kind == "microdata":
        return Microdata.from_json(text, statistic=statistic)
    return Release.from_json(text, statistic=statistic)
