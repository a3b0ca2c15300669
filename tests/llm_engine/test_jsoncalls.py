"""Calls as JSON and as Python: read whole, byte by byte, and never when they are not calls."""

import pytest

from llm_engine.jsoncalls import BareCallParser, read_json_call
from llm_engine.toolcalls import MalformedCall, ParsedCall, Piece, ToolCallParser

SCHEMAS = {
    "look": {"properties": {"at": {"type": "string"}, "times": {"type": "integer"}}, "required": ["at"]},
    "stop": {"properties": {}},
}
LOOK, STOP = ParsedCall("look", {"at": "the sky", "times": 2}), ParsedCall("stop", {})


def read(text: str, step: int) -> list[Piece]:
    parser = BareCallParser(SCHEMAS)
    found: list[Piece] = []
    for at in range(0, len(text), step):
        found += parser.push(text[at : at + step])
    found += parser.finish()
    if found and all(isinstance(piece, str) for piece in found):
        return ["".join(map(str, found))]
    return found


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "look", "parameters": {"at": "the sky", "times": 2}}', [LOOK]),
        ('\n{"name": "stop"}\n', [STOP]),
        ('{"name": "look", "arguments": "{\\"at\\": \\"the sky\\", \\"times\\": 2}"}', [LOOK]),
        (
            '{"name": "stop", "parameters": {}}; {"name": "look", "parameters": {"at": "the sky", "times": 2}}',
            [STOP, LOOK],
        ),
        ('[{"name": "stop", "arguments": {}}, {"name": "stop", "arguments": {}}]', [STOP, STOP]),
        ('[look(at="the sky", times=2), stop()]', [LOOK, STOP]),
        ("[laughs] Hello there.", ["[laughs] Hello there."]),
        ("[picture(s)] are nice", ["[picture(s)] are nice"]),
        ("Hello {you}.", ["Hello {you}."]),
        ('{"name": 3}', ['{"name": 3}']),
        ("{not json", ["{not json"]),
        ("[look(__import__('os').system('true'))]", ["[look(__import__('os').system('true'))]"]),
        ("[look(at=open('x'))]", ["[look(at=open('x'))]"]),
        ("", []),
    ],
)
def test_a_reply_is_calls_or_words(text: str, expected: list[Piece], step: int) -> None:
    assert read(text, step) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "jump"}', "there is no tool 'jump'; there are look, stop"),
        ('{"name": "look", "parameters": {}}', "parameter 'at' is missing"),
        ('{"name": "look", "parameters": {"at": "x", "times": "2"}}', "'times' is '2', which is not of type integer"),
        ("[look(at=3)]", "'at' is '3', which is not of type string"),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_is_reported(text: str, reason: str) -> None:
    [piece] = read(text, 3)
    assert isinstance(piece, MalformedCall) and piece.reason.endswith(reason)


def test_json_stands_in_tags_too() -> None:
    parser = ToolCallParser(SCHEMAS, read=read_json_call)
    text = 'One moment.\n<tool_call>\n{"name": "look", "arguments": {"at": "the sky", "times": 2}}\n</tool_call>'
    found = [piece for letter in text for piece in parser.push(letter)] + parser.finish()
    assert "".join(piece for piece in found if isinstance(piece, str)) == "One moment."
    assert [piece for piece in found if not isinstance(piece, str)] == [LOOK]
    bad = read_json_call("<function=look>", SCHEMAS)
    assert isinstance(bad, MalformedCall) and "one JSON object" in bad.reason
