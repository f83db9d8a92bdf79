"""Warnings point at the line of whoever calls dpjax."""

import pytest

from dpjax._util.spelling import names_arguments
from dpjax._util.warn import warn_at_the_call


def test_a_decorator_between_the_warning_and_the_user_does_not_move_it():
    """Every public function has one; a level that is counted by hand stops there."""
    with pytest.warns(UserWarning, match="it came") as caught:
        names_arguments(warn_at_the_call)("it came")
    assert caught[0].filename == __file__
