"""What imputations may have beside their kernel: latent data of their own, fresh proposals, options, parts."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

from dpjax.base import Imputation, Key, Latent, Model, Parameters
from dpjax.data_augmentation.records.parts import PartialKernel
from dpjax.models.simulation import GibbsState, Position
from dpjax.release import PrivateRelease
from dpjax.release.summed import merge_noise, one_sum_of

__all__ = [
    "FreshProposals",
    "OwnLatentData",
    "SecondStep",
    "TakesParts",
    "Tunable",
    "is_collapsed",
    "is_constrained",
    "latent_form",
]


@runtime_checkable
class ChangesForm(Protocol):
    """An imputation of other latent data than n records, whose kernel is built from another model and release."""

    def form(self, model: Model, release: PrivateRelease) -> tuple[Model, PrivateRelease]:
        """Model and release in the form of the latent data; a pair already in this form is returned unchanged."""


class SecondStep(NamedTuple):
    """A step that moves parameters and latent data together.

    Attributes
    ----------
    build
        ``() -> step``, where a step is ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.
    by_default
        ``() -> bool``, whether it is on by default; it may need the numbers of model and release.
    """

    build: Callable[[], Callable[..., Any]]
    by_default: Callable[[], bool]


@runtime_checkable
class OwnLatentData(Imputation, ChangesForm, Protocol):
    """An imputation of latent data other than records, such as `dpjax.counts`, with its own starts and joint moves."""

    @property
    def latent_data(self) -> str:
        """What stands for the records, in one word."""

    def is_constrained(self, release: PrivateRelease) -> bool:
        """Whether totals are known, which wholly new latent data hardly ever have, for a release in this form."""

    def is_collapsed(self, model: Model, release: PrivateRelease) -> bool:
        """Whether the parameters are integrated out of the kernel, so that they are to be drawn after it."""

    def second_step(self, model: Model, release: PrivateRelease) -> SecondStep | None:
        """The step that moves parameters and latent data together, if there is one."""

    def given_parameters(self) -> Self:
        """The imputation whose kernel holds the parameters, for parameter kernels that do not draw them afresh."""

    def state_shapes(self, model: Model, release: PrivateRelease) -> GibbsState:
        """The shapes and types of a state, for model and release in this form."""

    def draw_start(self, key: Key, model: Model, release: PrivateRelease) -> Position:
        """Parameters from the prior, and latent data in this form near the released value, for a pair of chains."""

    def find_starts(
        self, keys: tuple[Key, Key], model: Model, release: PrivateRelease, num_chains: int, initial: Parameters | None
    ) -> GibbsState:
        """States [chain, ...] of positive density for model and release in this form; see `dpjax.sample`."""


@runtime_checkable
class FreshProposals(Imputation, Protocol):
    """An imputation that proposes fresh records, such as `dpjax.imwg` and `dpjax.soma`."""

    @property
    def placement(self) -> Literal["soma", "systematic", "random"]:
        """How a proposal finds its place: by its weights, in order or at random."""

    def num_weighed(self, n: int) -> int:
        """Among how many of n records a proposal's place is selected by its weight there; 0 where it is given."""


@runtime_checkable
class TakesParts(Imputation, Protocol):
    """An imputation that may sweep over some of the records, such as systematic `dpjax.imwg`."""

    def takes_parts(self, n: int) -> bool:
        """Whether it can for n records."""

    def build_partial_kernel(self, model: Model, release: PrivateRelease) -> PartialKernel:
        """The kernel of such a sweep."""


def is_constrained(imputation: Imputation, release: PrivateRelease) -> bool:
    """Whether wholly new latent data hardly ever fit a release in their form, because totals are known."""
    return isinstance(imputation, OwnLatentData) and imputation.is_constrained(release)


def latent_form(model: Model, release: PrivateRelease, imputation: Imputation) -> tuple[Model, PrivateRelease]:
    """Model and release in the form of the latent data that an imputation moves."""
    summed = one_sum_of(release)
    release = release if summed is None else merge_noise(summed)
    return imputation.form(model, release) if isinstance(imputation, ChangesForm) else (model, release)


def is_collapsed(imputation: Imputation, model: Model, release: PrivateRelease) -> bool:
    """Whether the parameters are integrated out of the imputation, for model and release in latent form."""
    return isinstance(imputation, OwnLatentData) and imputation.is_collapsed(model, release)


@runtime_checkable
class Tunable(Imputation, Protocol):
    """An imputation with options that may be left to the warm-up, as by ``dpjax.soma("auto")``.

    It is a frozen dataclass of plain values, so that a checkpoint can store the options chosen.
    """

    @property
    def needs_tuning(self) -> bool:
        """Whether an option is left to the warm-up; no kernel can be built until it is chosen."""

    def with_defaults(self, model: Model, release: PrivateRelease) -> Self:
        """The imputation with a default for every option left to the warm-up.

        A default is a likely value if that needs no state. `dpjax.sample` builds this kernel before the warm-up, to
        refuse a model or release that does not fit.
        """

    def tune(self, key: Key, model: Model, release: Any, latent: Latent, parameters: Parameters) -> Self:
        """The imputation with every option left to the warm-up chosen at the chains' states.

        Parameters
        ----------
        key
            For draws that the choice may need: equal arguments must give an equal choice.
        latent
            The records of the chains, leaves [chain, ...].
        parameters
            Their parameters, leaves [chain, ...].
        """
