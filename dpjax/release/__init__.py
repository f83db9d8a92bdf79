"""What was released, and its distribution given the records."""

from dpjax.release.base import OwnRelease, PrivateRelease
from dpjax.release.checks import PrecisionWarning
from dpjax.release.conventions import CONVENTIONS, Convention, mechanism_from_published
from dpjax.release.describe import describe
from dpjax.release.from_json import from_json
from dpjax.release.joint import joint
from dpjax.release.local import LocalRelease
from dpjax.release.microdata import Microdata
from dpjax.release.summed import Release
from dpjax.release.unknown_count import UnknownCount

__all__ = [
    "CONVENTIONS",
    "Convention",
    "LocalRelease",
    "Microdata",
    "OwnRelease",
    "PrecisionWarning",
    "PrivateRelease",
    "Release",
    "UnknownCount",
    "describe",
    "from_json",
    "joint",
    "mechanism_from_published",
]
