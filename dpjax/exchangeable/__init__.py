"""Sampling of any density of exchangeable records."""

from dpjax.exchangeable.samplers import ExchangeableState, imwg, soma

__all__ = ["ExchangeableState", "imwg", "soma"]
