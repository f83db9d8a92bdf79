"""Where the noise of a private run comes from: `jax` for simulation, `secure` for publication."""

from dpjax.private.noise.base import Noise, Threefry
from dpjax.private.noise.secure import Secure

jax: Noise = Threefry()
secure: Noise = Secure()

__all__ = ["Noise", "Secure", "Threefry", "jax", "secure"]
