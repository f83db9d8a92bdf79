"""The flags of XLA under which tests run: ``python -m tests.tools.xla_flags`` prints them.

Nothing here imports JAX, which reads them when it starts.

Compilation takes most of the suite's time: optimising little, the older code generator and programs that are not cut
into parts for several threads save half of it.
"""

from importlib.metadata import version

LITTLE = "--xla_backend_optimization_level=0"
WHOLE = "--xla_cpu_parallel_codegen_split_count=1"
OLDER = "--xla_cpu_use_fusion_emitters=false"

# JAX 0.11 has the newer code generator alone, and a process ends at a flag that XLA does not know.
HAS_OLDER = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)

FLAGS = " ".join([LITTLE, WHOLE, *[OLDER] * HAS_OLDER])

if __name__ == "__main__":
    print(FLAGS)
