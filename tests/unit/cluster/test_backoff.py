import itertools

from gemmaserve_operator.cluster.backoff import Backoff


def test_doubles_up_to_the_cap_and_is_jittered_down_by_half_at_most():
    backoff = Backoff(first=1.0, cap=10.0)
    for failures, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (5000, 10.0)):
        delays = [backoff.delay(failures) for _ in range(200)]
        assert longest / 2 <= min(delays) < max(delays) <= longest


def test_iterates_without_end_and_from_the_first_each_time():
    backoff = Backoff(first=1.0, cap=64.0)
    for _ in range(2):
        delays = list(itertools.islice(backoff, 8))
        assert delays[0] <= 1.0
        assert delays[-1] >= 32.0
