"""In a call each value that was said goes to one parameter only, as far as others are left."""

from assistant.llm.small.calls import SaidCallGuide


def letters(text):
    return [256, *map(ord, text.removeprefix("<tool_call>"))] if text.startswith("<tool_call>") else [*map(ord, text)]


def next_letters(schemas, begun):
    guide = SaidCallGuide(schemas, " ", letters)
    for token in letters(f"<tool_call>\n<function=send>\n{begun}"):
        guide.push(token, "<tool_call>" if token == 256 else chr(token))
    return {chr(token) for token in guide.among()}


def given(**values):
    return "".join(f"<parameter={key}>\n {value}\n</parameter>\n" for key, value in values.items())


def test_a_value_that_was_given_is_not_given_again_if_anything_else_is_left():
    said = {"enum": ["Anna", "Anna is late", "late"]}
    schemas = {"send": {"properties": {"to": said, "text": said, "more": said}}}
    assert next_letters(schemas, given(to="Anna") + "<parameter=text>\n ") == {"l"}
    assert next_letters(schemas, given(to="Anna", text="late") + "<parameter=more>\n ") == {"A", "l"}


def test_two_switches_may_be_set_alike():
    switch = {"type": "boolean", "enum": [True, False]}
    schemas = {"send": {"properties": {"fan": switch, "light": switch}}}
    assert next_letters(schemas, given(fan="true") + "<parameter=light>\n ") == {"t", "f"}


def test_a_value_leaves_something_to_each_of_the_others():
    dish = {"enum": ["2", "2 soups", "soups"]}
    schemas = {"send": {"properties": {"dish": dish, "count": {"enum": [2]}}, "required": ["dish", "count"]}}
    assert next_letters(schemas, "<parameter=dish>\n ") == {"s"}
