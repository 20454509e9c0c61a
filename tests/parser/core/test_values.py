"""The values table: what a value becomes by how it is written and what the schema says."""

import pytest

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
ARRAY = {"type": "array"}
OBJECT = {"type": "object"}
NO_SCHEMA = {}


def value(scan, tool, schema, written):
    ((_, arguments),) = scan(f"<|tool_call>call:f{{v:{written}}}<tool_call|>", [tool("f", v=schema)]).calls
    return arguments["v"]


def same(one, other):
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    ("schema", "written", "expected"),
    [
        # Delimited: the string, whatever it looks like.
        (STRING, "§null§", "null"),
        (NO_SCHEMA, "§5§", "5"),
        (NO_SCHEMA, "§[1]§", "[1]"),
        (STRING, "§ C:\\n § ", " C:\\n "),
        (STRING, "§§", ""),
        ({"type": ["string", "null"]}, "§null§", "null"),
        ({"anyOf": [INTEGER, STRING]}, "§01234§", "01234"),
        ({"anyOf": [INTEGER, STRING]}, "§5§", "5"),
        # ... read as its declared type when that loses nothing.
        (INTEGER, "§3§", 3),
        (INTEGER, "§03§", "03"),
        (INTEGER, "§3.5§", "3.5"),
        (INTEGER, "§ 3§", " 3"),
        (NUMBER, "§2.5§", 2.5),
        (NUMBER, "§NaN§", "NaN"),
        (BOOLEAN, "§true§", True),
        (BOOLEAN, "§yes§", "yes"),
        (ARRAY, '§["a", 1]§', ["a", 1]),
        (ARRAY, '§{"a": 1}§', '{"a": 1}'),
        (OBJECT, '§{"a": 1}§', {"a": 1}),
        (OBJECT, '§{"a": 1, "a": 2}§', '{"a": 1, "a": 2}'),
        ({"type": ["integer", "null"]}, "§null§", "null"),
        ({"type": "array", "items": INTEGER}, '§["1", "x"]§', [1, "x"]),
        # Bare, schema says string: the text.
        (STRING, "42", "42"),
        (STRING, "true", "true"),
        (STRING, "null", "null"),
        (STRING, " some words ", "some words"),
        (STRING, "[1, 2]", "[1, 2]"),
        (STRING, "{a:§x§}", '{a:"x"}'),
        # Bare, schema says another type: that type if it reads as one.
        (INTEGER, "12", 12),
        (INTEGER, "3.0", 3),
        (INTEGER, "2.5", "2.5"),
        (INTEGER, "007", 7),
        (INTEGER, "many", "many"),
        (NUMBER, "108.", 108.0),
        (NUMBER, ".5", 0.5),
        (NUMBER, "+5", 5),
        (NUMBER, "-2.5E+2", -250.0),
        (NUMBER, "Infinity", "Infinity"),
        (NUMBER, "1e999", "1e999"),
        (BOOLEAN, "True", True),
        (BOOLEAN, "FALSE", False),
        (BOOLEAN, "1", "1"),
        ({"type": "null"}, "null", None),
        ({"type": "null"}, "nothing", "nothing"),
        (ARRAY, "[a,2]", ["a", 2]),
        (ARRAY, "{a:1}", "{a:1}"),
        (OBJECT, "{a:1}", {"a": 1}),
        (OBJECT, "[1]", "[1]"),
        (INTEGER, "[1]", "[1]"),
        # Bare, several types: the one it is written as.
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "None", None),
        ({"type": ["string", "integer"]}, "5", 5),
        ({"type": ["string", "integer"]}, "05", "05"),
        ({"type": ["string", "object"]}, "{a:1}", {"a": 1}),
        ({"type": "integer", "nullable": True}, "null", None),
        # Bare, no schema: its natural type.
        (NO_SCHEMA, "5", 5),
        (NO_SCHEMA, "-7", -7),
        (NO_SCHEMA, "22.8", 22.8),
        (NO_SCHEMA, "1e-3", 0.001),
        (NO_SCHEMA, "true", True),
        (NO_SCHEMA, "null", None),
        (NO_SCHEMA, "12345678901234567890123", 12345678901234567890123),
        (NO_SCHEMA, "01", "01"),
        (NO_SCHEMA, "1_000", "1_000"),
        (NO_SCHEMA, "NaN", "NaN"),
        (NO_SCHEMA, "words, and more", "words, and more"),
        (NO_SCHEMA, "[1,2.5,false,null,x]", [1, 2.5, False, None, "x"]),
        # Ordinary quotes are quotes.
        (NO_SCHEMA, '"5"', "5"),
        (INTEGER, '"5"', 5),
        (STRING, "'null'", "null"),
    ],
)
def test_value(scan, tool, schema, written, expected):
    assert same(value(scan, tool, schema, written), expected)


ITEM = {"type": "object", "properties": {"id": STRING, "n": INTEGER}}


@pytest.mark.parametrize(
    ("schema", "written", "expected"),
    [
        (ITEM, "{id:1,n:§2§,x:3}", {"id": "1", "n": 2, "x": 3}),
        ({"type": "array", "items": ITEM}, "[{id:1},{n:2}]", [{"id": "1"}, {"n": 2}]),
        ({"type": "array", "items": {"type": "array", "items": STRING}}, "[[1],[true]]", [["1"], ["true"]]),
        ({"type": "array", "prefixItems": [STRING, INTEGER], "items": STRING}, "[1,2,3]", ["1", 2, "3"]),
        ({"type": "object", "additionalProperties": STRING}, "{a:1}", {"a": "1"}),
        ({"type": "object", "patternProperties": {"^s_": STRING}}, "{s_a:1,n:1}", {"s_a": "1", "n": 1}),
        ({"allOf": [{"properties": {"a": STRING}}, {"properties": {"b": STRING}}]}, "{a:1,b:2}", {"a": "1", "b": "2"}),
        ({"oneOf": [INTEGER, ITEM]}, "{id:1}", {"id": "1"}),
        ({"oneOf": [INTEGER, ITEM]}, "7", 7),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"const": 1}, "1", 1),
        ({"properties": {"a": STRING}}, "{a:1}", {"a": "1"}),
    ],
)
def test_schemas_are_followed_into_values(scan, tool, schema, written, expected):
    assert value(scan, tool, schema, written) == expected


def test_the_alternative_that_fits_an_object_gives_its_types(scan, tool):
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"kind": {"const": "text"}, "value": STRING}},
            {"type": "object", "properties": {"kind": {"const": "count"}, "value": INTEGER}},
        ]
    }
    assert value(scan, tool, schema, "{kind:§text§,value:5}")["value"] == "5"
    assert value(scan, tool, schema, "{kind:§count§,value:5}")["value"] == 5


@pytest.mark.parametrize("where", ["$defs", "definitions"])
def test_references_are_followed(scan, where):
    tree = {"$ref": f"#/{where}/a~1b"}
    node = {"type": "object", "properties": {"name": STRING, "kids": {"type": "array", "items": tree}}}
    parameters = {"type": "object", "properties": {"tree": tree}, where: {"a/b": node}}
    tools = [{"name": "f", "parameters": parameters}]
    answer = scan("<|tool_call>call:f{tree:{name:1,kids:[{name:2,kids:[{name:3}]}]}}<tool_call|>", tools)
    assert answer.calls == [("f", {"tree": {"name": "1", "kids": [{"name": "2", "kids": [{"name": "3"}]}]}})]


LOOP = {"anyOf": [{"$ref": "#/properties/v"}, {"$ref": "#/properties/v"}, STRING]}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        "string",
        5,
        None,
        [],
        {"type": 5},
        {"type": "text"},
        {"type": []},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.org/schema"},
        {"$ref": 7},
        {"anyOf": "x"},
        {"anyOf": [5]},
        {"properties": []},
        {"patternProperties": {"(": STRING}},
        LOOP,
    ],
)
def test_an_invalid_schema_means_none(scan, tool, schema):
    assert same(value(scan, tool, schema, "5"), 5)


@pytest.mark.parametrize("parameters", [None, [], "x", {"properties": 3}, {"properties": {"v": {"type": {}}}}])
def test_invalid_parameters_mean_none(scan, parameters):
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    assert scan("<|tool_call>call:f{v:5}<tool_call|>", tools).calls == [("f", {"v": 5})]


@pytest.mark.parametrize("tools", [None, [5], [{}], [{"function": 3}], [{"function": {"name": 5}}]])
def test_invalid_tools_are_none(scan, tools):
    assert scan("<|tool_call>call:f{v:5}<tool_call|>", tools).calls == [("f", {"v": 5})]
