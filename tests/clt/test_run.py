"""The windows of the warm-up are Stan's, as BlackJAX has them."""

import jax
import numpy as np
import pytest
from blackjax.adaptation.window_adaptation import build_schedule

from dpjax.clt.run import make_schedule


@pytest.mark.parametrize("num_warmup", [0, 1, 19, 20, 100, 149, 150, 300, 500, 1_000, 1_234])
def test_windows_are_those_of_stan(num_warmup):
    *windows, draws = make_schedule(num_warmup, 10)
    assert (draws.start, draws.stop, draws.phase) == (num_warmup, num_warmup + 10, "sampling")
    assert [window.start for window in windows[1:]] == [window.stop for window in windows[:-1]]
    with jax.numpy_dtype_promotion("standard"):
        ends = np.asarray(build_schedule(num_warmup)).reshape(-1, 2)[:, 1]
    assert [window.stop for window in windows if window.tune] == (np.flatnonzero(ends) + 1).tolist()
