"""What a refusal is: an error that dpjax raises on purpose and before compilation, in its one layout."""

import re
import time

import jax
import pytest

from dpjax._util.validation import is_refusal

SECONDS = 60.0
"""No case compiles anything worth the name: this only stops one that would run a sampler."""


@pytest.fixture(scope="session")
def refused():
    """A function that checks a case ``(call, argument)``: the call is refused, by a message that names the argument."""

    def check(call, argument):
        began = time.monotonic()
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        assert is_refusal(caught.value), f"a raw error: {caught.value!r}"
        assert re.match(rf"{re.escape(argument)}.*: given .+; expected .+\. .+", str(caught.value), re.DOTALL)
        assert not any(isinstance(leaf, jax.core.Tracer) for leaf in caught.value.args)
        assert time.monotonic() - began < SECONDS

    return check
