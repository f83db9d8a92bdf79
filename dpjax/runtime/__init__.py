"""What every run is made of: compiled chunks, the loop on the host, devices, checkpoints and what identifies a run."""

from dpjax._util.jit import enable_compilation_cache

__all__ = ["enable_compilation_cache"]
