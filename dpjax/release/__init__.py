"""What was released, and the law of it given the records."""

from dpjax.release.base import PrivateRelease
from dpjax.release.checks import PrecisionWarning
from dpjax.release.conventions import CONVENTIONS, Convention, mechanism_from
from dpjax.release.joint import joint
from dpjax.release.local import LocalRelease
from dpjax.release.reading import from_json
from dpjax.release.summed import Release
from dpjax.release.unknown import UnknownCount
from dpjax.release.words import describe

__all__ = [
    "CONVENTIONS",
    "Convention",
    "LocalRelease",
    "PrecisionWarning",
    "PrivateRelease",
    "Release",
    "UnknownCount",
    "describe",
    "from_json",
    "joint",
    "mechanism_from",
]
