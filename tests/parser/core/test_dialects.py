"""The dialects of the contract's table, each as a body between real markers."""

import pytest

from gemmaserve_parser.core.gemma4 import Gemma4Scanner


@pytest.fixture(scope="module")
def tools(tool):
    return [tool("ping"), tool("look"), tool("weather.now"), tool("mcp.files:read"), tool("天气")]


@pytest.mark.parametrize(
    ("body", "name", "arguments"),
    [
        # The documented form.
        ("call:look{at:§the sea§,times:2}", "look", {"at": "the sea", "times": 2}),
        ("call:look{}", "look", {}),
        ("call:look{at:{deep:[§x§,{y:1}]},z:[]}", "look", {"at": {"deep": ["x", {"y": 1}]}, "z": []}),
        ("call:look{\n  at : §sea§ ,\n  times : 2\n}\n", "look", {"at": "sea", "times": 2}),
        ("call:look {at:1}", "look", {"at": 1}),
        ("call: look{at:1}", "look", {"at": 1}),
        ("call:look{at:1,}", "look", {"at": 1}),
        ("call:look{at:[1,2,],o:{k:3,},}", "look", {"at": [1, 2], "o": {"k": 3}}),
        ("call:look{at:1,at:2}", "look", {"at": 2}),
        ("call:天气{城市:§北京§}", "天气", {"城市": "北京"}),
        # Keys.
        ("call:look{§at§:1,§two words§:2}", "look", {"at": 1, "two words": 2}),
        ("call:look{two words:1,Mail (draft):{k:2}}", "look", {"two words": 1, "Mail (draft)": {"k": 2}}),
        ("call:look{a:§x§,b[0]:1,c:§y§}", "look", {"a": "x", "b[0]": 1, "c": "y"}),
        ("call:look{at§:§sea§}", "look", {"at": "sea"}),
        # JSON.
        ('call:look{"at":"the \\"sea\\"","n":[1,{"k":null}]}', "look", {"at": 'the "sea"', "n": [1, {"k": None}]}),
        ('call:look {"at": "\\u6d77\\ud83c\\udf0a\\n"}', "look", {"at": "海🌊\n"}),
        ('call:look({"at": 1})', "look", {"at": 1}),
        ("call:look{{at:1}}", "look", {"at": 1}),
        ('call:look{{"at":1}}', "look", {"at": 1}),
        ("call:look({at:§sea§})", "look", {"at": "sea"}),
        # Keyword arguments.
        ("call:look(at=§the sea§, times=2)", "look", {"at": "the sea", "times": 2}),
        (
            "call:look(at='the sea', on=True, off=False, none=None)",
            "look",
            {"at": "the sea", "on": True, "off": False, "none": None},
        ),
        ("call:look(at={'k': [1, 'two']})", "look", {"at": {"k": [1, "two"]}}),
        ("call:look(at:§:) ( }§)", "look", {"at": ":) ( }"}),
        ("call:look()", "look", {}),
        ("call:look(at:§sea§}", "look", {"at": "sea"}),
        ("call:look{at:§sea§)", "look", {"at": "sea"}),
        ("call:look{at:sea (north),n:1)", "look", {"at": "sea (north)", "n": 1}),
        ("call:look{at='a.txt',times=2}", "look", {"at": "a.txt", "times": 2}),
        # Ordinary quotes.
        ("call:look{at:'a, b}.pdf',n:1}", "look", {"at": "a, b}.pdf", "n": 1}),
        ('call:look{at:"The user\'s name: John."}', "look", {"at": "The user's name: John."}),
        ("call:look{at:'it\\'s',n:1}", "look", {"at": "it's", "n": 1}),
        ('call:look{at:"He said "hi" twice",n:1}', "look", {"at": 'He said "hi" twice', "n": 1}),
        ('call:look{path:"C:\\\\temp",re:"\\d+"}', "look", {"path": "C:\\temp", "re": "\\d+"}),
        ('call:look{at:"use § here"}', "look", {"at": 'use <|"|> here'}),
        # Slips with delimiters, commas and brackets.
        ("call:look{at:weather in Tokyo§}", "look", {"at": "weather in Tokyo"}),
        ("call:look{at:Paris, France§,n:5}", "look", {"at": "Paris, France", "n": 5}),
        ('call:look{at:"weather in Tokyo§}', "look", {"at": "weather in Tokyo"}),
        ("call:look{at:[a§,§b§]}", "look", {"at": ["a", "b"]}),
        ("call:look{at:§sea§n:90}", "look", {"at": "sea", "n": 90}),
        ("call:look{at:[§a§ §b§]}", "look", {"at": ["a", "b"]}),
        ("call:look{at:§print(§hi§)§,n:1}", "look", {"at": 'print("hi")', "n": 1}),
        ("call:look{at:§f(§a§, §b§)§,n:1}", "look", {"at": 'f("a", "b")', "n": 1}),
        ("call:look{at:§sea§ now}", "look", {"at": '"sea" now'}),
        ("call:look{at:[{path:§c:\\u\\a§,n:1}]", "look", {"at": [{"path": "c:\\u\\a", "n": 1}]}),
        ("call:look{at:[1,2}", "look", {"at": [1, 2]}),
        ("call:look(at:1}", "look", {"at": 1}),
        ("call:look{at:1}}", "look", {"at": 1}),
        # Bare text with structure in it.
        ("call:look{u:https://a.b/c?x=1&y=2,t:12:30}", "look", {"u": "https://a.b/c?x=1&y=2", "t": "12:30"}),
        ("call:look{e:max(1, 2),f:smile :)}", "look", {"e": "max(1, 2)", "f": "smile :)"}),
        ("call:look{e:{the sea},f:[{x},{y:1}]}", "look", {"e": "{the sea}", "f": ["{x}", {"y": 1}]}),
        ("call:look{e:don't,f:won't}", "look", {"e": "don't", "f": "won't"}),
        ("call:look{e:,f:1}", "look", {"e": "", "f": 1}),
        # Names.
        ("call:ping", "ping", {}),
        ("look{at:1}", "look", {"at": 1}),
        (":call:look{at:1}", "look", {"at": 1}),
        (":look{at:1}", "look", {"at": 1}),
        ("call:call:look{at:1}", "look", {"at": 1}),
        ("call:look:look{at:1}", "look", {"at": 1}),
        ("call:functions.look{at:1}", "look", {"at": 1}),
        ("call:default_api:weather.now{at:1}", "weather.now", {"at": 1}),
        ("default_api.ping()", "ping", {}),
        ("call:mcp.files:read{at:1}", "mcp.files:read", {"at": 1}),
        ("call:unheard.of{at:1}", "unheard.of", {"at": 1}),
    ],
)
def test_a_dialect_reads_as_the_same_call(scan, tools, body, name, arguments):
    assert scan(f"<|tool_call>{body}<tool_call|>", tools) == ([(name, arguments)], "", "")


@pytest.mark.parametrize(
    "body",
    [
        "call:look please at the sea",
        "call:look (see below)",
        "I will look at it",
        "call:unheard",
        "unheard{at:1}",
        "look",
        '{"name": "look", "arguments": {"at": 1}}',
        "call:look{the sea}",
        'call:look("the sea")',
        "call:look{at:1,§sea§}",
        'call:look{at:"the sea',
    ],
)
def test_what_cannot_be_a_call_is_content(scan, tools, body):
    assert scan(f"Well. <|tool_call>{body}<tool_call|>", tools) == ([], "Well. " + body.replace("§", '"'), "")


def test_two_calls_between_one_pair_of_markers_are_two_calls(scan, tools):
    answer = scan("<|tool_call>call:look{at:1}\ncall:ping{} Done.<tool_call|>", tools)
    assert answer == ([("look", {"at": 1}), ("ping", {})], "Done.", "")


def test_arguments_stay_readable_and_encodable(tools):
    scanner = Gemma4Scanner(tools)
    (call,) = scanner.feed('<|tool_call>call:look{at:"né \ud800 \0",n:0.10}<tool_call|>')
    assert call.arguments == '{"at": "né \\ud800 \\u0000", "n": 0.10}'
