"""What a model wrote, sorted into words, calls and thoughts: a table of the forms, and every way of cutting them."""

import json
import random

import pytest

from assistant.contracts import BadCall
from assistant.remote.calls import WrittenCall
from assistant.remote.sieve import Sieve, joined

TIMER = {"type": "object", "properties": {"duration": {"type": "string"}, "count": {"type": "integer"}}}
SCHEMAS = {"set_timer": TIMER, "get_time": {"type": "object", "properties": {}}}
CALL = WrittenCall("set_timer", '{"duration": "5 minutes"}')
BODY = '{"name": "set_timer", "arguments": {"duration": "5 minutes"}}'
BAD = "a call that cannot be read"

THOUGHTS = {
    "<think>I should greet.</think>Hello.": ["Hello."],
    "<thinking>\nhm\n</thinking>\n\nHello.": ["Hello."],
    "<thought>hm</thought>Hi": ["Hi"],
    "<reasoning>hm</reasoning>Hi": ["Hi"],
    "<scratchpad>1+1</scratchpad> Two.": ["Two."],
    "<seed:think>hm</seed:think>Hi": ["Hi"],
    "[THINK]hm[/THINK]Hi": ["Hi"],
    "◁think▷hm◁/think▷Hi": ["Hi"],
    "<|START_THINKING|>hm<|END_THINKING|>Hi": ["Hi"],
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>": ["Hi"],
    "<think>never closed, it goes on": [],
    "<think></think>": [],
    "  <think>a</think>\n <think>b</think> ": [],
    "Hello. <think>is that right?</think> How are you?": ["Hello. How are you?"],
    "Hello.<think>hm</think>\nHow are you?": ["Hello.\nHow are you?"],
    "<think>a<think>b</think>c</think>Hi": ["Hi"],
    "<think>the tag <think> is never closed twice</think>Hi": ["Hi"],
    "<THINK>x</THINK>Hi": ["Hi"],
    "<think>x</thinking>Hi": ["Hi"],
    "<think >x</think\n>Hi": ["Hi"],
    '<tool_response>{"ok": true}</tool_response>It is set.': ["It is set."],
    "Hello.<|im_end|>": ["Hello."],
    "Hello.</s>": ["Hello."],
    "<|eot_id|>Hello<|end_of_text|>": ["Hello"],
    "Hello.<thi": ["Hello."],
    "<think>x</think": [],
}
WORDS = [
    "3 < 4 and 5 > 4", "a <b> c", "if x <thin then", "I <3 you", "x < y", "<", "[", "{", "`", "a [b] c", "[1, 2]",
    "{a, b}", '{"a": 1}', '{"title": "x", "name": "y"}', "Use `<think>` to think.", "`{\"name\": 1}` is JSON.",
    "```python\nprint(1)\n```", "```\ncode\n```", '```json\n{"a": 1}\n```', '```json\n{"name": "Bob", "age": 3}\n```',
    'I would call {"name": "x"} here', "the <strong>word</strong>", "[see here](http://x)", "x = {}", "[]", "a\n\nb",
    "<tools> are nice", "<t", "The ``` fence", "[set] the table", '{"type": "object"}', "<p>One</p>", "2 <= 3",
]  # fmt: skip
CALLS = {
    f"<tool_call>{BODY}</tool_call>": [CALL],
    f"<tool_call>\n{BODY}\n</tool_call>": [CALL],
    f"Sure. <tool_call>{BODY}</tool_call>": ["Sure. ", CALL],
    f"<tool_call>{BODY}</tool_call> It is set.": [CALL, "It is set."],
    f"<tool_call>{BODY}": [CALL],
    f"<tool_call>{BODY[:-1]}</tool_call>": [CALL],
    f"<tool_call>{BODY}<tool_call>{BODY}</tool_call>": [CALL, CALL],
    f"<tool_call>{BODY}</tool_call>\n<tool_call>{BODY}</tool_call>": [CALL, CALL],
    f"<tool_call>{BODY}\n{BODY}</tool_call>": [CALL, CALL],
    f"<tool_call>[{BODY}, {BODY}]</tool_call>": [CALL, CALL],
    f"<think>I set it.</think><tool_call>{BODY}</tool_call>": [CALL],
    f"<think>I set it. <tool_call>{BODY}</tool_call>": [CALL],
    f"<think>maybe <tool_call>{BODY}</tool_call> no</think>Hello.": ["Hello."],
    BODY: [CALL],
    f"Sure.\n{BODY}": ["Sure.\n", CALL],
    f"[{BODY}]": [CALL],
    f"```json\n{BODY}\n```": [CALL],
    f"Sure.\n```json\n{BODY}\n```\nDone.": ["Sure.\n", CALL, "Done."],
    f"```\n{BODY}\n```": [CALL],
    f"```xml\n<tool_call>{BODY}</tool_call>\n```": [CALL],
    f"```tool_call\n{BODY}\n```": [CALL],
    BODY.replace("arguments", "parameters"): [CALL],
    '{"type": "function", "function": ' + BODY + "}": [CALL],
    '{"type": "function", "name": "set_timer", "parameters": {"duration": "5 minutes"}}': [CALL],
    '{"tool_calls": [{"function": ' + BODY + "}]}": [CALL],
    json.dumps({"name": "set_timer", "arguments": '{"duration": "5 minutes"}'}): [CALL],
    '{"name": "functions.set_timer", "arguments": {"duration": "5 minutes"}}': [CALL],
    "{'name': 'set_timer', 'arguments': {'duration': '5 minutes'}}": [CALL],
    '{"name": "get_time"}': [WrittenCall("get_time", "{}")],
    '{"name": "nobody", "arguments": {"x": 1}}': [WrittenCall("nobody", '{"x": 1}')],
    '{"tool": "set_timer", "args": {"duration": "5 minutes"}}': [CALL],
    '{"name": "set_timer", "arguments": {"duration": "}\\"{"}}': [WrittenCall("set_timer", '{"duration": "}\\"{"}')],
    "<function=set_timer><parameter=duration>5 minutes</parameter></function>": [CALL],
    "<tool_call>\n<function=set_timer>\n<parameter=duration>\n5 minutes\n</parameter>\n</function>\n"
    "</tool_call>": [CALL],
    '<function=set_timer>{"duration": "5 minutes"}</function>': [CALL],
    "<function=set_timer><parameter=count>3</parameter></function>": [WrittenCall("set_timer", '{"count": 3}')],
    '<invoke name="set_timer"><parameter name="duration">5 minutes</parameter></invoke>': [CALL],
    '<function_calls><invoke name="set_timer"><parameter name="duration">5 minutes</parameter></invoke>'
    "</function_calls>": [CALL],
    "<tool_call>set_timer\n<arg_key>duration</arg_key>\n<arg_value>5 minutes</arg_value>\n</tool_call>": [CALL],
    "<set_timer><duration>5 minutes</duration></set_timer>": [CALL],
    '<tool name="set_timer">{"duration": "5 minutes"}</tool>': [CALL],
    f"[TOOL_CALLS][{BODY}]": [CALL],
    '[TOOL_CALLS]set_timer[ARGS]{"duration": "5 minutes"}': [CALL],
    f"[TOOL_REQUEST]{BODY}[END_TOOL_REQUEST]": [CALL],
    f"<|python_tag|>{BODY}<|eom_id|>": [CALL],
    '[set_timer(duration="5 minutes")]': [CALL],
    "```tool_code\nprint(set_timer(duration='5 minutes'))\n```": [CALL],
    '<tool_code>set_timer(duration="5 minutes")</tool_code>': [CALL],
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.set_timer:0<|tool_call_argument_begin|>"
    '{"duration": "5 minutes"}<|tool_call_end|><|tool_calls_section_end|>': [CALL],
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>set_timer\n```json\n"
    '{"duration": "5 minutes"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>': [CALL],
    "<|channel|>commentary to=functions.set_timer <|constrain|>json<|message|>"
    '{"duration": "5 minutes"}<|call|>': [CALL],
    '<tool_call>{"name": "set_timer", "arguments": {broken</tool_call>': [BAD],
    '<tool_call>{"name": "set_timer", "argum': [BAD],
    '{"name": "set_timer", "arguments": {"dur': [BAD],
    "<tool_call>do it</tool_call>": [BAD],
    "Yes. <tool_call></tool_call>": ["Yes. ", BAD],
    '{"name": "set_timer", "arguments": "5 minutes"}</tool_call>': [BAD],
}
TABLE = [*THOUGHTS.items(), *((text, [text]) for text in WORDS), *CALLS.items()]


def sort(pieces: list[str], **kinds) -> list:
    sieve = Sieve(kinds.pop("schemas", SCHEMAS), **kinds)
    found = [piece for text in pieces for piece in sieve.feed(text)] + sieve.finish()
    return [BAD if isinstance(piece, BadCall) else piece for piece in joined(found)]


def cuts(text: str, seed: int) -> list[str]:
    random_ = random.Random(seed)
    places = sorted(random_.randrange(len(text) + 1) for _ in range(random_.randrange(1, 9)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@pytest.mark.parametrize(("text", "pieces"), TABLE, ids=range(len(TABLE)))
def test_forms(text, pieces):
    assert sort([text]) == pieces
    assert sort(list(text)) == pieces


@pytest.mark.parametrize("text", [text for text in CALLS if text[0] == "{"])
def test_without_tools_json_is_words(text):
    assert sort([text], schemas={}) == [text.removesuffix("</tool_call>")]


def test_thoughts_without_a_beginning_are_none_where_words_wait():
    held = {"I should greet.\n</think>\n\nHello.": ["Hello."], "a</think>b</think>Hi": ["Hi"], "Hello.": ["Hello."],
            f"{BODY}</think>Hello.": ["Hello."], "<think>x</think>Hi": ["Hi"], "hm[/THINK]Hi": ["Hi"]}  # fmt: skip
    for text, pieces in held.items():
        assert sort([text], hold=True) == sort(list(text), hold=True) == pieces
    sieve = Sieve(SCHEMAS, hold=True)
    assert sieve.feed("I should greet.") == [] and not sieve.orphan
    assert sieve.feed("</think>Hello.") == [] and sieve.orphan
    sieve = Sieve(SCHEMAS, hold=True)
    assert sieve.feed("<think>x</think>Hello.") == ["Hello."]  # it opened in sight: nothing need wait


def test_words_go_on_at_once():
    sieve = Sieve(SCHEMAS)
    for text in ("Hello", " there. ", "3 < ", "4"):
        assert sieve.feed(text) == [text]


def test_for_every_way_of_cutting_the_same_pieces_come_out():
    random_ = random.Random(7)
    atoms = [*(text for text, _ in TABLE), "</think>", "<think>", "</tool_call>", "<tool_call>", "```", "`", " ", "\n",
             "Hello. ", "{", "}", "[", "<", '"', "'", "\\", "</", "<|", "[TOOL_", "]", "json"]  # fmt: skip
    for seed in range(2000):
        text = "".join(random_.choice(atoms) for _ in range(random_.randrange(1, 7)))
        if random_.random() < 0.3:
            at = random_.randrange(len(text) + 1)
            text = text[:at] + text[at + random_.randrange(1, 5) :]
        for hold in (False, True):
            whole = sort([text], hold=hold)
            assert sort(cuts(text, seed), hold=hold) == whole == sort(list(text), hold=hold), repr(text)


def test_a_call_without_an_end_is_given_up():
    pieces = sort(["<tool_call>" + "x" * 70_000 + "</tool_call>Hello."])
    assert pieces[0] == BAD and pieces[-1].endswith("Hello.") is True
