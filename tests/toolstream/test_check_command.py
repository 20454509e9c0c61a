import json
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from toolstream.cli import app


def run(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def call_without_id(make, scripts):
    """vLLM's non-streaming Harmony fault, streamed: calls without ids."""
    call = make.chat_call("read_file", '{"path": "notes.txt"}') | {"id": None}

    async def script(request, send):
        answer = make.chat_stream(call) if request.body.get("stream") else make.chat_whole(call)
        await scripts.answers(answer)(request, send)

    return script


def test_a_right_server_passes_every_question(server, scripts):
    server.script = scripts.good_model
    result = run("check", server.url)
    assert result.exit_code == 0, result.stdout
    assert "no must-rule broken; 60 of 60 requests passed" in result.stdout
    assert {request.path for request in server.requests} == {
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
    }


def test_a_broken_rule_is_named_quoted_and_explained(make, server, scripts):
    server.script = call_without_id(make, scripts)
    result = run("check", server.url, "--endpoint", "chat")
    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert "call-has-id" in words
    assert "throws: Expected 'id' to be a string" in words
    assert '"id": null' in words


def test_json_holds_rules_and_questions(make, server, scripts):
    server.script = call_without_id(make, scripts)
    found = json.loads(run("check", server.url, "--endpoint", "chat", "--json").stdout)
    assert found["failed"] is True
    assert found["model"] == "stand-in"
    rule = next(each for each in found["rules"] if each["name"] == "call-has-id")
    assert (rule["severity"], rule["outcome"]) == ("must", "failed")
    assert rule["breaches"][0]["quote"]
    assert len(found["questions"]) == 20


def test_junit_counts_must_rules_as_failures(make, server, scripts, tmp_path):
    server.script = call_without_id(make, scripts)
    run("check", server.url, "--endpoint", "chat", "--junit", tmp_path / "junit.xml")
    suites = ET.parse(tmp_path / "junit.xml").getroot()
    suite = next(each for each in suites if each.get("name") == "chat stream auto one-call")
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {"call-has-id", "delta-complete"}
    assert suite.get("failures") == "2"


def test_junit_is_xml_whatever_a_server_sends(server, scripts, make, tmp_path):
    server.script = scripts.answers(make.chat_stream(text="<|tool_call>\x00\x1b]]>", finish_reason="stop"))
    run("check", server.url, "--endpoint", "chat", "--junit", tmp_path / "junit.xml")
    assert ET.parse(tmp_path / "junit.xml").getroot().tag == "testsuites"


def test_only_the_rules_of_the_profiles_count(make, server, scripts):
    call = make.chat_call("read_file", '{"path": "notes.txt"}')
    del call["type"]
    server.script = scripts.answers(make.chat_stream(call))
    strict = json.loads(run("check", server.url, "--endpoint", "chat", "--json", "--profile", "ai-sdk-0.2").stdout)
    loose = json.loads(run("check", server.url, "--endpoint", "chat", "--json", "--profile", "opencode").stdout)
    assert "call-has-type" in {rule["name"] for rule in strict["rules"] if rule["outcome"] == "failed"}
    assert "call-has-type" not in {rule["name"] for rule in loose["rules"]}


def test_a_model_that_calls_nothing_is_inconclusive_unless_calls_are_expected(make, server, scripts):
    async def script(request, send):
        build = make.chat_stream if request.body["stream"] else make.chat_whole
        await scripts.answers(build(text="I cannot.", finish_reason="stop"))(request, send)

    server.script = script
    shown = run("check", server.url, "--endpoint", "chat")
    assert shown.exit_code == 0
    assert "the model called no tool" in shown.stdout
    assert run("check", server.url, "--endpoint", "chat", "--expect-calls").exit_code == 1


def test_a_server_without_two_of_the_endpoints_is_judged_by_the_third(server, scripts):
    async def script(request, send):
        if request.path == "/v1/chat/completions":
            await scripts.good_model(request, send)
        else:
            await send(scripts.http("{}", status="404 Not Found"))

    server.script = script
    result = run("check", server.url)
    assert result.exit_code == 0
    assert "20 of 60 requests passed, 40 inconclusive" in " ".join(result.stdout.split())


def test_a_server_that_is_not_there_exits_with_two_and_one_line(unused_tcp_port):
    result = run("check", f"http://127.0.0.1:{unused_tcp_port}")
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Is the server up" in result.stderr


def test_a_url_that_is_none_is_a_usage_error():
    result = run("check", "localhost:8000")
    assert result.exit_code == 2
    assert "http://localhost:8000" in " ".join(result.stderr.split())


def test_the_api_key_is_sent_and_never_shown(server, scripts):
    server.script = scripts.good_model
    result = run("check", server.url, "--endpoint", "chat", "--json", "--api-key", "s3cret-key")
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer s3cret-key"}
    assert "s3cret-key" not in result.output


def gate(server, tmp_path, *more):
    report = tmp_path / "termination-log"
    result = run("check", server.url, "--gate", "--report", report, *more)
    assert report.stat().st_size <= 4096
    return result.exit_code, json.loads(report.read_text())


def test_the_gate_passes_a_right_server(server, scripts, tmp_path):
    server.script = scripts.good_model
    server.small["/version"] = {"version": "0.32.0"}
    code, report = gate(server, tmp_path, "--requests", "20", "--concurrency", "5")
    assert code == 0
    assert (report["passed"], report["failed"], report["total"]) == (20, 0, 20)
    assert report["vllmVersion"] == "0.32.0"
    assert len(server.requests) == 20


def test_the_gate_holds_a_server_that_breaks_a_rule(make, server, scripts, tmp_path):
    server.script = call_without_id(make, scripts)
    code, report = gate(server, tmp_path)
    assert code == 1
    assert "call-has-id" in {failure["name"] for failure in report["failures"]}
    assert len(server.requests) == 16


def test_the_gate_reports_a_server_that_is_not_there(server, tmp_path):
    server.small = {}
    code, report = gate(server, tmp_path)
    assert code == 2
    assert [failure["name"] for failure in report["failures"]] == ["unfinished"]


@pytest.mark.timeout(60)
def test_the_gate_ends_in_its_time(server, scripts, tmp_path):
    async def script(_request, send):
        await send(scripts.STREAM_HEAD)
        while True:
            await send(b": ping\n\n" * 1000)

    server.script = script
    code, report = gate(server, tmp_path, "--max-seconds", "1.5")
    assert code == 2
    assert "the time of 1.5 s was up" in report["failures"][0]["message"]


def test_terminals_get_no_control_characters_of_a_servers(make, server, scripts):
    call = make.chat_call("\x1b[2J\ud800", '{"path": "notes.txt"}')
    server.script = scripts.answers(make.chat_stream(call, text="<|tool_call>\x1b]0;x\x07"))
    result = run("check", server.url, "--endpoint", "chat")
    assert result.exit_code == 1
    assert "\x1b[2J" not in result.stdout
    assert "\x07" not in result.stdout


def test_extra_fields_go_with_every_request_and_the_result_says_so(server, scripts):
    server.script = scripts.good_model
    fields = {"chat_template_kwargs": {"enable_thinking": True}, "max_tokens": 99}
    arguments = ("check", server.url, "--endpoint", "chat", "--extra-body", json.dumps(fields))
    assert json.loads(run(*arguments, "--json").stdout)["extraBody"] == fields
    asked = [request.body for request in server.requests if request.path == "/v1/chat/completions"]
    assert len(asked) == 20
    assert all(body | fields == body for body in asked)
    assert f"each request carried also: {json.dumps(fields)}" in run(*arguments).stdout


@pytest.mark.parametrize("text", ["[]", "{", '{"stream": false}'])
def test_extra_fields_that_cannot_be_are_refused_before_anything_is_asked(server, text):
    assert run("check", server.url, "--extra-body", text).exit_code == 2
    assert server.requests == []


def test_the_gate_asks_nothing_beside_what_clients_ask(server):
    assert run("check", server.url, "--gate", "--extra-body", '{"top_k": 1}').exit_code == 2
    assert server.requests == []
