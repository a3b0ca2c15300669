"""Words that a talk makes likelier."""

from assistant.contracts import MOST_TERMS
from assistant.talk.expected import expected


def test_what_is_kept_comes_before_names_and_these_before_long_words():
    terms = expected(
        ["oat milk", "Katarzyna's birthday"],
        ["I am Béla. Where is Miskolc?", "Miskolc is in Hungary."],
        "The cathedral of Miskolc is old.",
        ["set_light"],
    )
    assert terms == (
        "oat", "milk", "Katarzyna's", "birthday", "Hungary", "Béla", "Miskolc", "cathedral", "set", "light",
    )  # fmt: skip


def test_a_sentence_begins_with_a_capital_and_that_is_no_name():
    assert expected([], ["Yes. Then we go. Not today! Why not? “Never” he said."], "", []) == ()


def test_no_more_than_an_engine_takes_and_none_twice():
    words = [f"word{letter}{other}" for letter in "abcdefghijkl" for other in "abcdefghijkl"]
    terms = expected([*words, *words], [], "", [])
    assert len(terms) == MOST_TERMS and len(set(terms)) == MOST_TERMS and terms[0] == "wordaa"
