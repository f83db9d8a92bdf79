"""The sources of the noise of a private run: `jax` for simulation, `secure` for publication."""

from dpjax.private.noise.base import Noise, Threefry
from dpjax.private.noise.secure import Secure

jax: Noise = Threefry()
secure: Noise = Secure()

__all__ = ["Noise", "Secure", "Threefry", "jax", "secure"]
