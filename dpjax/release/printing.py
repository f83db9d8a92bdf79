"""A release in a few lines, and in words."""

from typing import Any, Self

import numpy as np

from dpjax._util.lazy import implemented_by
from dpjax._util.printing import Printed
from dpjax._util.validation import SHOWN, is_traced, name_of
from dpjax.release.unknown_count import number_in_words

__all__ = ["Described", "release_in_lines"]


class Described(Printed):
    """A release whose `repr` is a few lines, and what is so of most releases."""

    @property
    def is_estimated(self) -> bool:
        """Whether numbers of the noise are not known, but estimated with the parameters."""
        return False

    @property
    def remark(self) -> str:
        """What summaries say of draws that follow from it; nothing by default."""
        return ""

    @property
    def weights(self) -> Any:
        """The survey weights [n] of the records; none by default."""
        return None

    @property
    def is_of_records(self) -> bool:
        """Whether all that was released is of single records."""
        return False

    @property
    def exact(self) -> dict[str, Any]:
        """Those of the fields that are known exactly, or in part: none."""
        return {}

    @property
    def local(self) -> Any:
        """The release as one of a value of each record alone: it is none."""
        return None

    @property
    def microdata(self) -> Any:
        """The release as fields of each record, beside a sum if there is one: it is none."""
        return None

    def hold(self, records: Any) -> Any:
        """The records as they are, of which nothing is known exactly."""
        return records

    def tabulated(self) -> Self:
        """The release as kernels read it, with tables of what takes long to compute given the released value."""
        return self

    @implemented_by("dpjax.release.describe.describe")
    def describe(self) -> str:
        """What was released, by what noise, and what that promises, as by `dpjax.describe`."""
        raise NotImplementedError


def release_in_lines(kind: str, what: str, mechanism: Any, value: Any, n: Any) -> str:
    """A release in four lines; of numbers that are traced or batched, their shape."""
    is_plain = not is_traced(value, mechanism) and np.ndim(value) == 1
    few = is_plain and np.size(value) <= SHOWN
    shape = f"{getattr(value, 'dtype', type(value).__name__)}{list(np.shape(value))}"
    shown = ", ".join(f"{number:g}" for number in np.ravel(value).tolist()) if few else shape
    noise = mechanism.promise.words() if is_plain else name_of(mechanism)
    return f"{kind} of {number_in_words(n)}\nstatistic: {what}\nnoise: {noise}\nvalue: {shown}"
