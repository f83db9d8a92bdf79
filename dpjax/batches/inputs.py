"""The releases of a batch, checked to be of one kind, and stacked."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.release import PrivateRelease
from dpjax.release.base import is_release
from dpjax.validation import fail

__all__ = ["check_formed", "check_releases", "stack"]


def check_releases(releases: Any) -> list[PrivateRelease]:
    """The releases as a list, or an error unless they differ in their numbers alone."""
    if not isinstance(releases, Sequence) or not releases:
        given = repr(releases) if isinstance(releases, Sequence) else type(releases).__name__
        remedy = "Pass a list, such as [release.sample(key, records) for key in jax.random.split(key, 200)]."
        fail("releases", given, "a list of releases", remedy, error=TypeError)
    for number, release in enumerate(releases):
        if not is_release(release):
            given = f"{type(release).__name__} in place {number}"
            fail("releases", given, "dpjax.Release or dpjax.LocalRelease", "Pass releases only.", error=TypeError)
        if form(release) != form(releases[0]):
            expected = "releases of one statistic, mechanism and n, with values of one shape and type"
            remedy = "Make a batch of each kind."
            fail("releases", f"release {number}, which is of another kind than release 0", expected, remedy)
    return list(releases)


def check_formed(formed: list[PrivateRelease]) -> list[PrivateRelease]:
    """The releases in the form of their latent data, or an error where that form is not the same for all."""
    for number, release in enumerate(formed):
        if form(release) != form(formed[0]):
            given = f"release {number}, whose known totals are others than those of release 0"
            fail("releases", given, "the same known totals, for which counts are moved", "Make a batch of each.")
    return formed


def form(release: PrivateRelease) -> Any:
    """The structure of a release, and the shapes and types of its numbers."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(release)]
    return jax.tree.structure(release), [(leaf.shape, leaf.dtype) for leaf in leaves]


def stack(trees: list[Any]) -> Any:
    """Trees of numbers as one tree of arrays with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)
