"""Sampling of any density of exchangeable records."""

from dpjax.exchangeable.samplers import ExchangeableState, coupled, imwg, soma

__all__ = ["ExchangeableState", "coupled", "imwg", "soma"]
