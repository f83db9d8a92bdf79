"""What `sample` asks of an imputation that leaves a choice to the warm-up."""

from typing import Protocol, Self, runtime_checkable

from dpjax.base import Imputation, Key, Latent, Model, Parameters
from dpjax.release import Release

__all__ = ["Tunable"]


@runtime_checkable
class Tunable(Imputation, Protocol):
    """An imputation with choices that may be open; a frozen dataclass of plain values, so that checkpoints hold it."""

    @property
    def is_open(self) -> bool:
        """Whether a choice is left to the warm-up."""

    def closed(self) -> Self:
        """Some choice, to check whether the imputation fits a model and a release."""

    def adapt(self, key: Key, model: Model, release: Release, latent: Latent, parameters: Parameters) -> Self:
        """The choice where the chains are: latent and parameters [chain, ...]. It depends on its arguments alone."""
