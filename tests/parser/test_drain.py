"""The preStop hook: ends when nothing is in flight, and not before."""

import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gemmaserve_parser import cli
from gemmaserve_parser.drain import POLL_SECONDS, QUIET_POLLS, Clock, ServerGone, drain, in_flight, read_in_flight

METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="a b"}} {running}
vllm:num_requests_running{{engine="1",model_name="a b"}} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="a b"}} {waiting}
vllm:num_requests_waiting_by_reason{{engine="0",reason="capacity"}} 9.0
vllm:request_success_total{{engine="0"}} 1e+06
"""


class FakeClock:
    """Time passes only by waiting."""

    def __init__(self):
        self.time = 0.0

    @property
    def clock(self):
        return Clock(lambda: self.time, self.sleep)

    def sleep(self, seconds):
        self.time += seconds


@pytest.fixture
def time_of():
    """The moment at which a drain ends, and what is left then, by what the server says poll after poll."""

    def run(answers, *, settle=5.0, timeout=60.0):
        fake, answers = FakeClock(), iter(answers)

        def read():
            answer = next(answers)
            if answer == "gone":
                raise ServerGone
            return answer

        left = drain(read, settle=settle, timeout=timeout, clock=fake.clock)
        return fake.time, left

    return run


QUIET = POLL_SECONDS * (QUIET_POLLS - 1)


def test_requests_of_all_engines_count():
    assert in_flight(METRICS.format(running=2.0, waiting=3.0)) == 6


def test_no_counters_are_no_zero():
    assert in_flight("# nothing\npython_info 1.0\n") is None


def test_an_idle_server_is_left_at_once_but_for_the_settling(time_of):
    assert time_of(itertools.repeat(0)) == (5.0 + QUIET, 0)


def test_it_ends_as_soon_as_the_last_stream_has(time_of):
    assert time_of([3, 2, 1] + [0] * QUIET_POLLS) == (5.0 + 3 * POLL_SECONDS + QUIET, 0)


def test_a_request_between_two_looks_starts_the_quiet_anew(time_of):
    assert time_of([0] * (QUIET_POLLS - 1) + [1] + [0] * QUIET_POLLS)[0] == 5.0 + QUIET_POLLS * POLL_SECONDS + QUIET


def test_it_waits_no_longer_than_it_may(time_of):
    assert time_of(itertools.repeat(4), timeout=30) == (35.0, 4)


@pytest.mark.parametrize("settle", [0.0, 5.0])
def test_with_no_time_it_looks_once(time_of, settle):
    assert time_of(itertools.repeat(4), settle=settle, timeout=0) == (settle, 4)


def test_what_is_not_known_is_not_taken_for_idle(time_of):
    assert time_of([0, None] * 100, timeout=20)[0] == 25.0


def test_a_server_that_is_gone_has_nothing_in_flight(time_of):
    assert time_of([2, "gone"]) == (5.0 + POLL_SECONDS, 0)


class Server(BaseHTTPRequestHandler):
    left = 0
    status = 200

    def do_GET(self):
        self.send_response(self.status if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(f"vllm:num_requests_running 0.0\nvllm:num_requests_waiting {self.left}.0\n".encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server on a port of its own that says what `Server.left` says; proxies of the environment lead nowhere."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(Server, "left", 0)
    monkeypatch.setattr(Server, "status", 200)
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


def port_of(server):
    return str(server.server_address[1])


def test_the_command_asks_the_server(server, capsys):
    assert cli.main(["drain", "--port", port_of(server), "--timeout", "20"]) == 0
    Server.left = 2
    assert cli.main(["drain", "--port", port_of(server), "--timeout", "0"]) == 1
    assert "2 requests in flight after 0 s" in capsys.readouterr().err


def test_a_server_that_answers_with_an_error_is_not_idle(server, capsys):
    Server.status = 500
    assert cli.main(["drain", "--port", port_of(server), "--timeout", "0"]) == 1
    assert "does not say" in capsys.readouterr().err


def test_nobody_there(server):
    server.shutdown()
    server.server_close()
    with pytest.raises(ServerGone):
        read_in_flight(f"http://127.0.0.1:{port_of(server)}")


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon"])
def test_seconds_are_seconds(seconds, capsys):
    with pytest.raises(SystemExit) as refused:
        cli.main(["drain", "--timeout", seconds])
    assert refused.value.code == 2
    assert "--timeout" in capsys.readouterr().err
