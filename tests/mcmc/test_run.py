"""The schedule of a run: the windows of its warm-up, without gaps."""

import pytest

from dpjax.mcmc.run import make_schedule


def test_the_windows_of_a_warmup():
    segments = make_schedule(1_000, 500, 3)
    assert [segment.start for segment in segments] == [0, 62, 124, 186, 248, 372, 496, 620, 744, 992, 1_000]
    assert [segment.draws for segment in segments] == [62] * 9 + [8, 500]
    assert [segment.tune for segment in segments] == [True] * 9 + [False, False]
    assert segments[-1].stop == 2_500


@pytest.mark.parametrize("num_warmup", [0, 1, 15, 63, 64, 100, 777, 1_600])
def test_a_schedule_has_no_gaps(num_warmup):
    segments = make_schedule(num_warmup, 10, 2)
    stops = [segment.stop for segment in segments]
    assert [segment.start for segment in segments] == [0, *stops[:-1]]
    assert segments[-1] == ("sampling", num_warmup, 10, 2, False)
    assert all(segment.phase == "warm-up" for segment in segments[:-1])
    assert any(segment.tune for segment in segments) == (num_warmup >= 64)
