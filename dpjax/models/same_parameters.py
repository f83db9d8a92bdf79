"""Models of other latent data, with the parameters of the model that they hold."""

from dpjax.base import Array, Key, Model, Parameters

__all__ = ["SameParameters"]


class SameParameters(Model, abstract=True):
    """A model whose parameters, with their prior and coordinates, are those of the model in its field ``model``."""

    model: Model

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior of the other model."""
        return self.model.sample_prior(key)

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of that prior."""
        return self.model.log_prior(parameters)

    @property
    def draws_prior(self) -> bool:
        """That of the other model."""
        return self.model.draws_prior

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """That of the other model."""
        return self.model.unconstrain(parameters)

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """That of the other model."""
        return self.model.constrain(unconstrained)

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """That of the other model."""
        return self.model.log_jacobian(unconstrained)

    def derived(self, parameters: Parameters) -> Parameters:
        """That of the other model."""
        return self.model.derived(parameters)
