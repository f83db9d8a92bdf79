"""Models of other parameters, with the records of the model that they hold."""

from collections.abc import Callable

from dpjax.base import Array, Key, Model, Parameters, Records

__all__ = ["SameRecords"]


class SameRecords(Model, abstract=True):
    """A model whose records are those of the model in its field ``model``, at its `own_parameters`."""

    model: Model

    def own_parameters(self, parameters: Parameters) -> Parameters:
        """The parameters of the other model."""
        raise NotImplementedError

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn from the other model."""
        return self.model.sample_records(key, self.own_parameters(parameters), n)

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each record [n]."""
        return self.model.log_density(self.own_parameters(parameters), records)

    @property
    def support(self) -> Callable[[], Records] | None:
        """That of the other model."""
        return self.model.support

    @property
    def num_records(self) -> int | None:
        """That of the other model."""
        return self.model.num_records

    @property
    def exchangeable(self) -> bool:
        """That of the other model."""
        return self.model.exchangeable

    @property
    def count_field(self) -> str | None:
        """That of the other model."""
        return self.model.count_field

    def has(self, member: str) -> bool:
        """Whether the only field is Normal or Binomial as that of the other model is, too."""
        return super().has(member) and (member not in ("normal_field", "binomial_field") or self.model.has(member))

    def normal_field(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean and standard deviation of the only field."""
        return self.model.normal_field(self.own_parameters(parameters))

    def binomial_field(self, parameters: Parameters) -> tuple[Array, Array]:
        """The number of trials and the probability of the only field."""
        return self.model.binomial_field(self.own_parameters(parameters))
