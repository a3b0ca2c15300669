"""The score of the whole loop: its questions have answers, and a wrong answer is laid to the first part that failed."""

import pytest

from recipes.loop_questions import NOW, talks
from recipes.loop_score import ScoredTurn, blame, shares, spoken_words, table


def row(place=0, asked="what is two plus two", keys=("4",), needs=0, **fields) -> ScoredTurn:
    return ScoredTurn(0, place, "sum", "a voice", "ada", asked, keys, needs, **fields)


def test_two_hundred_turns_of_every_kind_each_with_an_answer():
    held = list(talks(20261121, 200))
    asked = [question for talk in held for question in talk]
    assert len(asked) == 200 and held == list(talks(20261121, 200)) and held != list(talks(1, 200))
    kinds = [question.kind for question in asked]
    assert len(set(kinds)) >= 25 and all(kinds.count(kind) >= 2 for kind in set(kinds))
    assert all(spoken_words(key) for question in asked for key in question.keys)
    assert all(question.needs <= place for talk in held for place, question in enumerate(talk))
    assert not any(letter.isdigit() for question in asked for letter in question.spoken)
    clocks = {question.keys for question in asked if question.kind == "time"}
    assert clocks == {(f"{NOW.hour - 12}:{NOW.minute} pm",)}


@pytest.mark.parametrize(
    ("words", "right"),
    [("two plus two is four", True), ("it is for", False), ("", False), ("twenty four", True)],
)
def test_an_answer_is_right_when_its_key_is_heard(words, right):
    assert row().right(words.split()) is right


def test_a_count_that_does_not_stop_is_wrong():
    counted = ScoredTurn(0, 0, "count", "a voice", "ada", "count to three", ("1, 2, 3",), 0)
    assert counted.right(["one", "two", "three"]) and not counted.right(["one", "two", "three", "four"])


def test_the_first_part_that_failed_is_to_blame():
    good = {"heard": "what is 2 + 2", "said": "2 plus 2 is 4.", "fitted": "two plus two is four"}
    rows = [
        row(0, **good),
        row(1, **{**good, "fitted": "two plus two is"}),
        row(2, **{**good, "said": "I do not know.", "fitted": "i do not know"}),
        row(3, heard="what is 2 + 3", said="2 plus 3 is 5.", fitted="two plus three is five"),
        row(4, needs=1, **{**good, "said": "5.", "fitted": "five"}),
        row(5, needs=4, **{**good, "said": "5.", "fitted": "five"}),
    ]
    causes = blame(rows)
    assert [causes[0, place] for place in range(6)] == [
        "right", "spoken unclearly", "thought wrong", "heard wrong", "an earlier turn", "thought wrong",
    ]  # fmt: skip
    told = shares(rows, causes)
    assert (told["n"], told["right"], told["right in words"]) == (6, 0.167, 0.333)
    assert told["heard to the letter"] == pytest.approx(5 / 6, abs=1e-3) and told["clear"] == 0.5
    assert sum(told["causes"].values()) == 6
    assert "17 %" in table({"all": told})[1]
