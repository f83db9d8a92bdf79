"""Which devices the chains of a run are spread over, and what moves between these and the host.

Chains do not know of each other from one step to the next. So each device advances its own by one and the same program,
and nothing is sent on the way. A chain's keys are its own, and its draws those that it makes anywhere.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from dpjax._util.host import chosen_device, on_devices
from dpjax._util.jit import in_full_precision
from dpjax._util.validation import check_count, fail, is_traced
from dpjax.base import Array

__all__ = [
    "BY_CHAIN",
    "EVERYWHERE",
    "SECOND",
    "Devices",
    "agree",
    "any_device",
    "choose_mesh",
    "gather_to_host",
    "leads",
    "num_devices",
    "on_one_device",
    "over_devices",
    "place",
    "platform_of",
    "same_everywhere",
    "share_bytes",
    "share_evenly",
    "spans_processes",
    "to_host",
]

Devices = int | Sequence[jax.Device] | None
"""How many of this process's devices, or which devices; None for as many of this process's as can share the chains."""

AXIS = "chains"
BY_CHAIN, SECOND, EVERYWHERE = PartitionSpec(AXIS), PartitionSpec(None, AXIS), PartitionSpec()
"""Arrays with the chains on the first axis, on the second, and without: the same on every device."""


def choose_mesh(devices: Devices, number: int, argument: str = "num_chains") -> Mesh | None:
    """The devices that share `number` chains evenly; None for JAX's default device alone.

    Parameters
    ----------
    argument
        What is shared, as errors call it.

    Raises
    ------
    TypeError, ValueError
        If these are no devices, fewer are at hand, they cannot share the chains evenly, or this process has none.
    """
    if devices is None:
        chosen = share_default(number)
        return None if len(chosen) == 1 else make_mesh(chosen)
    chosen = check_devices(devices)
    if number % len(chosen):
        remedy = f"Pass a number that divides {argument}, or a multiple of {len(chosen)} as {argument}."
        fail("devices", f"{len(chosen)} devices", f"devices that share {argument}={number} evenly", remedy)
    return make_mesh(chosen)


def share_evenly(devices: Devices, most: int, argument: str) -> tuple[Mesh | None, int]:
    """The devices as by `choose_mesh`, and the largest number up to `most` that they share evenly."""
    size = len(default_devices() if devices is None else check_devices(devices))
    number = most // size * size or most
    return choose_mesh(devices, number, argument), number


def share_default(number: int) -> list[jax.Device]:
    """As many of the default devices as divide the number."""
    here = default_devices()
    return here[: max(size for size in range(1, len(here) + 1) if number % size == 0)]


def default_devices() -> list[jax.Device]:
    """The devices of this process; one of them if the user's settings of JAX name it."""
    here = jax.local_devices()
    return here if chosen_device() is None else here[:1]


def check_devices(devices: Any) -> list[jax.Device]:
    """The devices that were asked for, or an error."""
    here = jax.local_devices()
    if not isinstance(devices, Sequence) or isinstance(devices, str):
        remedy = "Pass how many of this process's devices, or a list such as jax.devices()."
        number = check_count("devices", devices, remedy)
        if number > len(here):
            fail("devices", number, f"at most {len(here)}, the devices of this process", remedy)
        return here[:number]
    chosen = list(devices)
    remedy = "Pass some of jax.devices(), each once."
    if not chosen or not all(isinstance(device, jax.Device) for device in chosen):
        fail("devices", repr(devices), "a number, or a list of jax.Device", remedy, error=TypeError)
    if len(set(chosen)) < len(chosen) or len({device.platform for device in chosen}) > 1:
        fail("devices", repr(devices), "different devices of one platform", remedy)
    processes = {device.process_index for device in chosen}
    if jax.process_index() not in processes:
        fail("devices", repr(devices), "devices of this process among them", "Call it in processes that take part.")
    if len(processes) not in (1, jax.process_count()):
        # What they decide alike goes through all processes, and would wait for the others.
        given = f"devices of {len(processes)} processes of {jax.process_count()}"
        fail("devices", given, "those of one process or of all", "Pass jax.devices() or jax.local_devices().")
    return chosen


def make_mesh(devices: list[jax.Device]) -> Mesh:
    """The devices along one axis."""
    return Mesh(np.asarray(devices), (AXIS,), axis_types=(AxisType.Auto,))


@contextmanager
def on_one_device() -> Iterator[None]:
    """JAX's default device alone, for what has to be the same to the last bit however many devices there are."""
    chosen = chosen_device()
    with on_devices(), jax.default_device(jax.local_devices()[0] if chosen is None else chosen):
        yield


def num_devices(mesh: Mesh | None) -> int:
    """How many devices share the chains."""
    return 1 if mesh is None else mesh.size


def platform_of(mesh: Mesh | None) -> str:
    """The platform of the chains, such as ``"cpu"``."""
    return jax.default_backend() if mesh is None else str(mesh.devices.flat[0].platform)


def spans_processes(mesh: Mesh | None) -> bool:
    """Whether some of the devices are another process's."""
    return mesh is not None and mesh.is_multi_process


def over_devices(*, by_chain: tuple[str, ...], made: Any) -> Callable[..., Any]:
    """A decorator of programs with an argument ``mesh``: each of its devices runs the program on its own chains.

    Keyword-only arguments of the program are arrays. The others decide what is compiled, or are a model.

    Parameters
    ----------
    by_chain
        The names of the arrays with leading axis [chain]; the other arrays are whole on every device.
    made
        The places of the chains in what is returned, such as `BY_CHAIN`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        arrays = [name for name, one in signature.parameters.items() if one.kind is inspect.Parameter.KEYWORD_ONLY]
        others = [name for name in arrays if name not in by_chain]

        @wraps(function)
        @in_full_precision
        def share(*arguments: Any, **keywords: Any) -> Any:
            given = signature.bind(*arguments, **keywords).arguments
            mesh = given["mesh"]
            if mesh is None:
                return function(**given)
            own, whole = ({name: given.pop(name) for name in names} for names in (by_chain, others))
            # What varies over devices is not followed through the samplers' loops, where it would take many casts.
            specs = {"in_specs": (BY_CHAIN, EVERYWHERE), "out_specs": made, "check_vma": False}
            return jax.shard_map(lambda own, whole: function(**own, **whole, **given), mesh=mesh, **specs)(own, whole)

        return share

    return decorate


def any_device(mesh: Mesh | None, flag: Array) -> Array:
    """Whether a flag [] is true on any device, within a program of `over_devices`."""
    return flag if mesh is None else jax.lax.pmax(flag.astype(np.int32), AXIS) > 0


def place(mesh: Mesh | None, arguments: dict[str, Any], by_chain: tuple[str, ...]) -> dict[str, Any]:
    """Named arguments of a program on the devices; as they are if there is one device.

    Parameters
    ----------
    by_chain
        The names of those with leading axis [chain], of which each device has its own part. It has all of the others.
    """
    if mesh is None:
        return arguments
    own, whole = (NamedSharding(mesh, spec) for spec in (BY_CHAIN, EVERYWHERE))
    return {
        name: jax.tree.map(partial(put, own if name in by_chain else whole), tree) for name, tree in arguments.items()
    }


def put(sharding: NamedSharding, leaf: Any) -> Any:
    """One array, the same in all processes, with what this process's devices are to have of it on them."""
    if isinstance(leaf, (bool, int, float)) or is_traced(leaf):
        return leaf  # programs take plain numbers as they are, and shapes are asked for of no device
    if sharding.is_fully_addressable or not getattr(leaf, "is_fully_addressable", True):
        return jax.device_put(leaf, sharding)
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(put(sharding, jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
    host = np.asarray(leaf)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def gather_to_host(mesh: Mesh | None, tree: Any) -> Any:
    """Arrays from the devices for programs that look at all chains: on the host, or as they are from one device."""
    return tree if mesh is None else to_host(tree)


def to_host(tree: Any) -> Any:
    """The whole of every array on the host, in each process."""
    return jax.tree.map(fetch, tree)


def fetch(leaf: Any) -> np.ndarray:
    """One array, of whose parts other processes may have some."""
    if isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated):
        leaf = multihost_utils.process_allgather(leaf, tiled=True)
    return np.asarray(leaf)


def same_everywhere(mesh: Mesh | None, number: int) -> int:
    """The number that the first process has, if several are to make the same decision."""
    return int(multihost_utils.broadcast_one_to_all(np.int32(number))) if spans_processes(mesh) else number


def agree(mesh: Mesh | None, flag: bool) -> bool:
    """What the first process decides, if several are to decide alike."""
    return bool(same_everywhere(mesh, int(flag)))


def leads(mesh: Mesh | None) -> bool:
    """Whether this process is the one that reads and writes files for all that share a run."""
    return not spans_processes(mesh) or jax.process_index() == 0


PIECE = 2**20


def share_bytes(mesh: Mesh | None, content: bytes | None) -> bytes | None:
    """What the first of several processes has, None for nothing; the others have nothing to begin with."""
    if not spans_processes(mesh):
        return content
    size = divmod(-1 if content is None else len(content), PIECE)
    whole, rest = (same_everywhere(mesh, number) for number in size)
    if whole < 0:
        return None
    held = np.zeros((whole + 1, PIECE), np.uint8)
    held.reshape(-1)[: len(content or b"")] = np.frombuffer(content or b"", np.uint8)
    pieces = [np.asarray(multihost_utils.broadcast_one_to_all(piece), np.uint8).tobytes() for piece in held]
    return b"".join(pieces)[: whole * PIECE + rest]
