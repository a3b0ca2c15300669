"""Words that want more, as ears write them."""

import pytest

from assistant.text.english import ENGLISH
from assistant.text.unfinished import wants_more
from recipes.turns.texts import COMPLETE, INTERRUPTIONS


@pytest.mark.parametrize(
    "text",
    ["Set a timer for, um.", "Put, let me think.", "Remind me to.", "What's the", "Well.", "Okay, so", "My name is uh",
     "Could you", "I was wondering if.", "Add coffee, tea, and", "Take a note that", "Set a timer for -", "How many",
     "My name is, well.", "Okay, and then, so", "What is seven plus?", "Make a note."],
)  # fmt: skip
def test_fillers_and_open_phrases(text):
    assert wants_more(text, ENGLISH)


@pytest.mark.parametrize(
    "text",
    ["", "Yes.", "Okay.", "Mm.", "Read my notes, please.", "What is that for?", "Where are you from?", "Turn it on.",
     "Tell me how it is.", "Stop.", "Repeat that five times.",
     "I don't feel well.", "I think so.", "Please make a note."],
)  # fmt: skip
def test_what_can_be_the_end_of_a_request(text):
    assert not wants_more(text, ENGLISH)


def test_no_complete_request_of_the_sets_is_held():
    texts = [text for part in ("dev", "test") for text in (*COMPLETE[part], *INTERRUPTIONS[part])]
    assert [text for text in texts if wants_more(text, ENGLISH)] == []
