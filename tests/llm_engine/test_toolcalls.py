"""Calls out of text: whole, byte by byte, with a tail, malformed and hostile."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_engine.toolcalls import LONGEST_CALL, MalformedCall, ParsedCall, Piece, ToolCallParser, read_call

TIMER = (
    "<tool_call>\n<function=set_timer>\n<parameter=minutes>\n5\n</parameter>\n"
    "<parameter=label>\ntea\n</parameter>\n</function>\n</tool_call>"
)
SCHEMAS: dict[str, Any] = {
    "set_timer": {
        "type": "object",
        "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}, "tags": {"type": "array"}},
        "required": ["minutes"],
    },
    "now": {"type": "object", "properties": {}},
}
CALL = ParsedCall("set_timer", {"minutes": 5, "label": "tea"})


def parse(text: str, size: int | None = None, schemas: Any = SCHEMAS) -> list[Piece]:
    """All pieces, neighbouring text joined, with the text fed `size` characters at a time."""
    parser, out = ToolCallParser(schemas), []
    for at in range(0, len(text), size or max(1, len(text))):
        out += parser.push(text[at : at + (size or len(text))])
    out += parser.finish()
    joined: list[Piece] = []
    for piece in out:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


@pytest.mark.parametrize("size", [None, 1, 2, 7])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Just text, 1 < 2.", ["Just text, 1 < 2."]),
        (TIMER, [CALL]),
        (f"One moment.\n\n{TIMER}", ["One moment.", CALL]),
        (f"{TIMER}\n{TIMER}", [CALL, CALL]),
        (f"{TIMER}\nafter", [CALL, "\nafter"]),
        ("<tool_call>\n<function=now>\n</function>\n</tool_call>", [ParsedCall("now", {})]),
        ("<think>\nhm <tool_call>\n</think>\n\nHi", ["\n\nHi"]),
        ("<tool", ["<tool"]),
        ("a <tool_callx> b\n", ["a <tool_callx> b\n"]),
    ],
)
def test_pieces_do_not_depend_on_the_cuts(text: str, expected: list[Piece], size: int | None) -> None:
    assert parse(text, size) == expected


def test_nothing_is_required_where_a_schema_says_null() -> None:
    assert parse(TIMER, schemas={"set_timer": SCHEMAS["set_timer"] | {"required": None}}) == [CALL]


@given(text=st.text(alphabet="<>/=tol_calfunction \n", max_size=60), size=st.integers(1, 9))
def test_any_text_is_cut_alike(text: str, size: int) -> None:
    assert parse(text, size) == parse(text)


@given(text=st.text(max_size=60).filter(lambda t: "<tool_call>" not in t and "<think>" not in t))
def test_plain_text_comes_out_whole(text: str) -> None:
    assert "".join(map(str, parse(text, 3))) == text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "not one <function"),
        ('{"name": "now"}', "not one <function"),
        ("<function=now>", "not one <function"),
        ("<function=fly>\n</function>", "no tool 'fly'"),
        ("<function=set_timer>\n<parameter=label>\ntea\n</parameter>\n</function>", "'minutes' is missing"),
        ("<function=set_timer>\n<parameter=minutes>\nfive\n</parameter>\n</function>", "no integer"),
        ("<function=set_timer>\n<parameter=minutes>\ntrue\n</parameter>\n</function>", "no integer"),
        ("<function=set_timer>\n<parameter=tags>\n{}\n</parameter>\n</function>", "no array"),
        ("<function=now>\nplease\n</function>", "'please\\n' is not a <parameter"),
        ("<function=now>\n<parameter=a>\n1\n</parameter>\n<parameter=a>\n2\n</parameter>\n</function>", "given twice"),
        ("<function=now>\n<parameter=a>\n<parameter=b>\n2\n</parameter>\n</function>", "'a' is not closed"),
        ("<function=set_timer>\n<parameter=minutes>\n" + "[" * 9000 + "\n</parameter>\n</function>", "no integer"),
    ],
)
def test_malformed_calls_are_reported_with_a_reason(body: str, reason: str) -> None:
    found = read_call(body, SCHEMAS)
    assert isinstance(found, MalformedCall)
    assert reason in found.reason


def test_a_call_that_never_ends_is_bad_and_bounded() -> None:
    assert parse("Well.\n<tool_call>\n<function=now>") == [
        "Well.",
        MalformedCall("<tool_call>\n<function=now>", "the reply ended inside the call"),
    ]
    parser = ToolCallParser()
    found = parser.push("<tool_call>" + "x" * (LONGEST_CALL + 1))
    assert [type(piece) for piece in found] == [MalformedCall]


def test_values_keep_their_text_without_a_schema_and_their_lines_with_one() -> None:
    body = "<function=note>\n<parameter=text>\n two\nlines \n</parameter>\n<parameter=n>\n007\n</parameter>\n"
    body += "</function>"
    assert read_call(body) == ParsedCall("note", {"text": " two\nlines ", "n": "007"})
    assert read_call(body, lead=" ") == ParsedCall("note", {"text": "two\nlines ", "n": "007"})
    call = read_call(body.replace("note", "now"), SCHEMAS)
    assert isinstance(call, ParsedCall)
    assert call.arguments_json == '{"text": " two\\nlines ", "n": "007"}'
