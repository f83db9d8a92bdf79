"""Where the noise of a private run comes from: `jax` for simulation, `secure` for publication."""

from dpjax.private.noise.base import Noise
from dpjax.private.noise.grid import Secure
from dpjax.private.noise.threefry import Threefry

jax: Noise = Threefry()
secure: Noise = Secure()

__all__ = ["Noise", "Secure", "Threefry", "jax", "secure"]
