"""Imputations with options, such as SOMA's number of attempts, that `dpjax.sample` chooses during warm-up."""

from typing import Any, Protocol, Self, runtime_checkable

from dpjax.base import Imputation, Key, Latent, Model, Parameters

__all__ = ["Tunable"]


@runtime_checkable
class Tunable(Imputation, Protocol):
    """An imputation with options that may be left to the warm-up, as by ``dpjax.soma("auto")``.

    It is a frozen dataclass of plain values, so that a checkpoint can store the options chosen.
    """

    @property
    def is_open(self) -> bool:
        """Whether an option is still to be chosen; no kernel can be built until it is."""

    def closed(self) -> Self:
        """The imputation with every open option at some valid value.

        `dpjax.sample` builds its kernel before the warm-up, to refuse a model or release that does not fit.
        """

    def adapt(self, key: Key, model: Model, release: Any, latent: Latent, parameters: Parameters) -> Self:
        """The imputation with every open option chosen for where the chains are.

        Parameters
        ----------
        key
            For draws that the choice may need: equal arguments must give an equal choice.
        latent
            The records of the chains, leaves [chain, ...].
        parameters
            Their parameters, leaves [chain, ...].
        """
