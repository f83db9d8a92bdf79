"""Short runs of every sampler on several devices, for processes that tests start.

``python -m tests.runtime.spread_runs FILE COUNT [ADDRESS NUMBER PROCESSES]`` writes the draws that are made on COUNT
forced devices of this process, or on those of all processes that meet at the address, and those on one device.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.tools.xla_flags import FLAGS

CHAINS = 8
SAVES = 2
"""After which a run is interrupted."""
Named = tuple[str, Any]


def augmented(devices: Any, **options: Any) -> Iterator[Named]:
    """Data augmentation with a step size, whose warm-up pools the chains."""
    import jax
    import numpy as np

    import dpjax

    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    release = dpjax.Release(np.array([3.0]), dpjax.Gaussian(2.0), dpjax.statistics.total("y", -5.0, 5.0), n=6)
    settings = {"num_warmup": 64, "num_samples": 12, "thin": 2, "parameter_kernel": "mala", "progress": False}
    run = dpjax.sample(jax.random.key(1), model, release, num_chains=CHAINS, devices=devices, **settings, **options)
    yield from run.draws.items()
    yield from run.info.items()
    yield "records at the end", run.final_states.latent.records["y"]
    yield "step size", run.tuning.step_size


def stepped(devices: Any) -> Iterator[Named]:
    """A model without an exact update, whose step size is fitted by trajectories that double last bits at each step."""
    import jax
    import numpyro
    from numpyro import distributions

    import dpjax

    def model(n: int) -> None:
        mean = numpyro.sample("mean", distributions.Normal(0.0, 2.0))
        scale = numpyro.sample("scale", distributions.HalfNormal(2.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", distributions.Normal(mean, scale))

    release = dpjax.Release([60.0], dpjax.Laplace(5.0), dpjax.statistics.total("y", -10.0, 10.0), n=50)
    settings = {"num_chains": CHAINS, "num_warmup": 100, "num_samples": 12, "progress": False}
    run = dpjax.sample(
        jax.random.key(8), dpjax.from_numpyro(model, records=("y",)), release, devices=devices, **settings
    )
    yield from run.draws.items()


def continued(run: Any, devices: Any, others: Any, file: Path) -> Iterator[Named]:
    """A run on these devices that is interrupted, and continued on others; of several processes the first saves it."""
    import jax

    from dpjax.runtime.checkpoint import PeriodicCheckpoint

    save, saves = PeriodicCheckpoint.save_sometimes, []

    def interrupt(self: PeriodicCheckpoint, status: Any) -> None:
        self.try_to_save(status)
        saves.append(status.filled)
        if len(saves) == SAVES:
            raise KeyboardInterrupt

    PeriodicCheckpoint.save_sometimes = interrupt
    try:
        with suppress(KeyboardInterrupt):
            list(run(devices, checkpoint=file))
    finally:
        PeriodicCheckpoint.save_sometimes = save
    assert len(saves) == SAVES
    assert file.exists() == (jax.process_index() == 0)
    return run(others, checkpoint=file)


def mixed(devices: Any, **options: Any) -> Iterator[Named]:
    """A mixture whose slots run out, at a time that its devices have to agree on."""
    import jax
    import numpy as np

    import dpjax
    from dpjax.mixture.samplers import conditional

    conditional.FIRST_CAPACITY = 4
    values, component = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3]), dpjax.mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
    settings = {"num_chains": CHAINS, "num_warmup": 4, "num_samples": 12, "progress": False, "collect": "labels"}
    run = dpjax.mixture.sample(
        jax.random.key(3),
        values,
        dpjax.Laplace(0.6),
        component=component,
        concentration=2.0,
        devices=devices,
        **settings,
        **options,
    )
    yield "clusters", run.draws["num_clusters"]
    yield "labels", run.collected["labels"]
    yield "slots", run.info["num_slots"]


def approximated(devices: Any) -> Iterator[Named]:
    """Trajectories, which long adaptation would take far apart if one bit differed.

    A device has two chains at least, as a loop over one of them would be compiled without the loop.
    """
    import jax

    import dpjax

    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 10.0), 4.0)
    release = dpjax.Release([130.0], dpjax.Laplace(20.0), dpjax.statistics.total("y"), 100)
    settings = {"num_chains": 2 * CHAINS, "num_warmup": 300, "num_samples": 12, "progress": False}
    run = dpjax.sample_clt(jax.random.key(6), model, release, devices=devices, **settings)
    yield from run.draws.items()
    yield from run.info.items()


def begun(devices: Any) -> Iterator[Named]:
    """Chains that start at such draws."""
    return augmented(devices, initial="large-sample")


def published(devices: Any) -> Iterator[Named]:
    """Draws under a budget."""
    import jax
    import jax.numpy as jnp

    from dpjax import private
    from tests.private.cases import AMPLE, WALK, ledger

    starts = jnp.linspace(-0.1, 0.1, 2 * CHAINS).reshape(CHAINS, 2)
    run = private.sample(jax.random.key(4), WALK, starts, ledger(AMPLE), num_iterations=20, devices=devices)
    yield "published", run.draws
    yield "accepted", run.not_private.acceptance_rate


def met(devices: Any, **options: Any) -> Iterator[Named]:
    """Pairs that meet, more than run at once."""
    import jax

    from dpjax.coupling import unbiased_estimates
    from tests.coupling.enumerated import kernel, ones

    sizes = {"num_pairs": 40, "batch_size": 24, "max_steps": 400}
    found = unbiased_estimates(jax.random.key(5), kernel(), ones, k=2, m=4, **sizes, devices=devices, **options)
    yield "times", found.meetings.times
    yield "estimates", found.values["ones"]


def drawn(runs: dict[str, Any], devices: Any) -> Iterator[Named]:
    """What each run makes on some devices."""
    for name, run in runs.items():
        for what, array in run(devices):
            yield f"{name}, {what}", array


def main(path: str, count: str, address: str = "", number: str = "0", processes: str = "1") -> None:
    """All runs on all devices, and on one."""
    os.environ["XLA_FLAGS"] = f"{FLAGS} --xla_force_host_platform_device_count={count}"
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", os.environ.get("DPJAX_TEST_FLOAT32") != "1")
    if address:
        jax.distributed.initialize(address, int(processes), int(number))
    everywhere, alone, folder = jax.devices(), jax.local_devices()[:1], Path(path).with_suffix("")
    folder.mkdir()
    runs = {"sample": augmented, "mixture": mixed, "coupling": met, "large": approximated, "begun": begun}
    if not address:
        runs["private"] = published
    if jax.config.jax_enable_x64:
        runs["stepped"] = stepped
    found, expected = (dict(drawn(runs, devices)) for devices in (everywhere, alone))
    resumed = {}
    for name in ("sample", "mixture", "coupling"):
        others = everywhere if address or name == "coupling" else alone
        resumed[name] = partial(continued, runs[name], others=others, file=folder / f"{name}.npz")
    found = {f"{name} [shared]": array for name, array in found.items()}
    found |= {f"{name} [continued]": array for name, array in drawn(resumed, everywhere)}
    np.savez(path, **found, **expected)


if __name__ == "__main__":
    main(*sys.argv[1:])
