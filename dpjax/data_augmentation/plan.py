"""The choices that define a sweep of data augmentation."""

from dataclasses import dataclass, is_dataclass
from typing import Any, Literal, TypeGuard

from dpjax._util.validation import fail
from dpjax.base import Imputation
from dpjax.data_augmentation.parameters import ParameterKernel
from dpjax.data_augmentation.records.forms import OwnLatentData, TakesParts, Tunable
from dpjax.data_augmentation.summed_out import SummedOut

Noise = Literal["held", "moved", "moved by surrogate"]


@dataclass(frozen=True)
class SweepPlan:
    """The choices that define a sweep, such as `Posterior.plan`; hashable, so that compiled programs are reused.

    Parameters
    ----------
    imputation
        How the records move given the parameters.
    interweave
        Whether the non-centred step moves parameters and records together.
    parameter_kernel
        How the parameters move given the records; None for the model's own update.
    noise
        What the non-centred step does with the latent normals. They are fixed (held); or their mean and scatter are
        moved with the parameters, optionally by a surrogate of the released sum that is corrected exactly.
    refresh
        Whether `dpjax.sample` makes refreshes between sweeps: proposals of new parameters and wholly new records.

    Examples
    --------
    >>> from dpjax.data_augmentation.plan import SweepPlan
    >>> import dpjax
    >>> plan = SweepPlan(dpjax.imwg(), interweave=True, parameter_kernel=None)
    >>> print(plan.describe())
    imputation: IMwG(scan='systematic', window=None)
    interweaving: on
    parameters given records: the model's exact update
    """

    imputation: Imputation
    interweave: bool
    parameter_kernel: ParameterKernel | None
    noise: Noise = "held"
    refresh: bool = False

    @property
    def own_latent_data(self) -> OwnLatentData | None:
        """The imputation, if its latent data are not records; else None."""
        return self.imputation if isinstance(self.imputation, OwnLatentData) else None

    @property
    def draws_records(self) -> bool:
        """Whether records that are summed out are drawn for each draw that is kept."""
        return isinstance(self.imputation, SummedOut) and self.imputation.records

    @property
    def sums_out(self) -> bool:
        """Whether the records are summed out, so that the parameters move alone."""
        return isinstance(self.imputation, SummedOut)

    @property
    def uses_tuning(self) -> bool:
        """Whether a step of the sweep uses the tuning."""
        return self.interweave or self.parameter_kernel is not None

    def describe(self, collapsed: bool = False) -> str:
        """The imputation, whether there is a non-centred step, and how the parameters move given the records.

        Parameters
        ----------
        collapsed
            Whether the parameters are integrated out of the imputation; see `is_collapsed`.
        """
        if self.sums_out:
            return f"records: summed out\nparameters: {show(self.parameter_kernel)}"
        update = "the model's exact update" if self.parameter_kernel is None else show(self.parameter_kernel)
        if collapsed:
            update = f"integrated out of the imputation, and drawn for each draw kept by {update}"
        noise = "" if self.noise == "held" else f", with noise {self.noise}"
        interweaving = f"on{noise}" if self.interweave else "off"
        parts = {"imputation": show(self.imputation), "interweaving": interweaving, "parameters given records": update}
        parts |= {"refreshes": "on"} if self.refresh else {}
        return "\n".join(f"{name}: {part}" for name, part in parts.items())


def show(part: Any) -> str:
    """A part of a sweep with its numbers, or the name of a function."""
    return repr(part) if is_dataclass(part) else getattr(part, "__qualname__", type(part).__name__)


def needs_tuning(imputation: Imputation) -> TypeGuard[Tunable]:
    """Whether the imputation leaves an option to the warm-up."""
    return isinstance(imputation, Tunable) and imputation.needs_tuning


def check_tuned(imputation: Imputation, given: Any) -> None:
    """Raise if the imputation, `given` perhaps as ``"auto"``, leaves an option to the warm-up of `dpjax.sample`."""
    if needs_tuning(imputation):
        expected = "fixed numbers, as only the warm-up of dpjax.sample chooses them"
        remedy = "Pass dpjax.imwg(), dpjax.soma(attempts) or dpjax.pcn(block, correlation)."
        fail("imputation", repr(given or imputation), expected, remedy)


def imputation_in_parts(plan: SweepPlan, n: int) -> TakesParts | None:
    """The imputation, if sweeps of n records between refreshes may be over parts of them, as their noise moves, too."""
    if not plan.refresh or plan.noise == "held" or not isinstance(plan.imputation, TakesParts):
        return None
    return plan.imputation if plan.imputation.takes_parts(n) else None
