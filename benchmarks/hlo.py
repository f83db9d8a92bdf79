"""What a compiled program asks of a machine: kernels in sequence, steps of its loops, bytes moved."""

import re
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import NamedTuple

SIZES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4}
"""Bytes of a number; all others have eight."""

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "copy-done", "partition-id"}
"""What runs nothing."""

SLICES = {"dynamic-slice", "dynamic-update-slice"}

HEAD = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
LINE = re.compile(r"^\s+(?:ROOT )?%([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$")
CALLED = re.compile(r"(?:calls|to_apply|body|condition|branch_computations)=\{?((?:%[\w.-]+(?:, )?)+)")


class Instruction(NamedTuple):
    """A line of a computation: its name, the bytes it gives, what it is, the names it takes, and the whole rest."""

    name: str
    size: int
    kind: str
    operands: list[str]
    rest: str

    @property
    def called(self) -> list[str]:
        """The computations that it calls."""
        return [name for group in CALLED.findall(self.rest) for name in re.findall(r"%([\w.-]+)", group)]

    @property
    def trips(self) -> int | None:
        """How often the body of a loop runs; None where the data decide."""
        found = re.search(r'"known_trip_count":\{"n":"(\d+)"', self.rest)
        return int(found[1]) if found else None


Computation = dict[str, Instruction]


@dataclass(frozen=True)
class Cost:
    """Kernels run one after the other, steps of the innermost loops, and bytes read and written."""

    kernels: float = 0.0
    steps: float = 0.0
    moved: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.kernels + other.kernels, self.steps + other.steps, self.moved + other.moved)

    def repeat(self, trips: float) -> "Cost":
        """So many runs of a loop's body, which is a step unless it has loops of its own."""
        return Cost(trips * self.kernels, trips * (self.steps or 1.0), trips * self.moved)


def program_cost(text: str, unknown_trips: float = 1.0) -> Cost:
    """The cost of a compiled program in text.

    Parameters
    ----------
    unknown_trips
        How often the body of a loop runs whose length the data decide.
    """
    computations, entry = read_program(text)

    @cache
    def cost(name: str) -> Cost:
        return sum((cost_of(line, computations[name]) for line in computations[name].values()), Cost())

    def cost_of(line: Instruction, scope: Computation) -> Cost:
        if line.kind in FREE:
            return Cost()
        if line.kind == "while":
            trips = unknown_trips if line.trips is None else line.trips
            return sum(map(cost, line.called), Cost()).repeat(trips)
        if line.kind == "call":
            return sum(map(cost, line.called), Cost())
        if line.kind == "conditional":
            return max(map(cost, line.called), key=lambda branch: branch.kernels)
        inner = computations[line.called[0]] if line.kind == "fusion" else {}
        return Cost(kernels=1, moved=bytes_moved(line, scope, inner))

    return cost(entry)


def read_program(text: str) -> tuple[dict[str, Computation], str]:
    """The computations by name, each of instructions by name, and the name of the first to run."""
    computations: dict[str, Computation] = {}
    entry, here = "", {}
    for line in text.splitlines():
        if head := HEAD.match(line):
            here = computations.setdefault(head[1], {})
            entry = head[1] if line.startswith("ENTRY") else entry
        elif found := LINE.match(line):
            name, shape, kind, rest = found.groups()
            operands = re.findall(r"%([\w.-]+)", rest[: rest.index(")")])
            here[name] = Instruction(name, bytes_of(shape), kind, operands, rest)
    return computations, entry


def bytes_of(shape: str) -> int:
    """The bytes of an array, or of all arrays of a tuple."""
    arrays = re.findall(r"(\w+)\[([\d,]*)\]", shape)
    return sum(SIZES.get(dtype, 8) * prod(map(int, filter(None, sides.split(",")))) for dtype, sides in arrays)


def bytes_moved(line: Instruction, scope: Computation, inner: Computation) -> int:
    """What a kernel reads and writes: of an array that it only slices, or updates in place, the slice.

    Parameters
    ----------
    scope, inner
        The computation that the kernel stands in, and that of a fusion's parts.
    """
    own = inner or {line.name: line}
    names = parameters_of(inner) if inner else line.operands
    read = sum(bytes_read(name, scope[operand].size, own) for name, operand in zip(names, line.operands, strict=True))
    updates = [own[part.operands[1]].size for part in inner.values() if part.kind == "dynamic-update-slice"]
    return read + (sum(updates) if updates else line.size)


def parameters_of(computation: Computation) -> list[str]:
    """The names of its parameters, in order."""
    places = {int(line.rest.split(")")[0]): line.name for line in computation.values() if line.kind == "parameter"}
    return [places[place] for place in sorted(places)]


def bytes_read(name: str, size: int, computation: Computation) -> int:
    """What is read of an array of this name: the slices where nothing but slices of it is used."""
    users = [line for line in computation.values() if name in line.operands]
    if users and all(user.kind in SLICES and user.operands[0] == name for user in users):
        return sum(user.size for user in users if user.kind == "dynamic-slice")
    return size
