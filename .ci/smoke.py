"""What a fresh installation has to do: import, be complete, and draw from a posterior."""

from pathlib import Path

import jax
import jax.numpy as jnp

import dpjax

package = Path(dpjax.__file__).parent
assert "site-packages" in package.parts, f"{package} is a checkout, not an installation"
assert (package / "py.typed").exists()

release = dpjax.Release([58, 21, 12, 64], dpjax.DiscreteGaussian(10.0), dpjax.statistics.cells("cell", 4), n=150)
model = dpjax.models.categorical(concentration=jnp.ones(4), shape=(2, 2))
posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
assert posterior.draws["probabilities"].shape == (4, 200, 4)
print(dpjax.__version__, dpjax.describe(release), sep="\n")
