"""What engines write comes out as the small model's texts have it, and what is in that form already stays."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.llm.small.reading import for_small_model
from assistant.text.written import as_written
from recipes.texts.talks import user_utterances
from recipes.texts.words import spoken_number


@pytest.mark.parametrize(
    ("engine", "wanted"),
    [
        ("Um, wake me at 7 p.m., please.", "wake me at 7:00 pm please"),
        ("What's 25 x 4?", "what's 25 * 4"),
        ("It is $150, 30% off.", "it is 150 dollars 30% off"),
        ("Set a timer for twenty-five minutes.", "set a timer for 25 minutes"),
        ("A 25-minute timer, uh, for eggs.", "a 25 minute timer for eggs"),
        ("What's forty-eight divided by 6?", "what's 48 / 6"),
        ("Remind me on November 20th.", "remind me on November 20"),
        ("The 25th of December.", "December 25"),
        ("What is the 3rd planet?", "what is the third planet"),
        ("My name is Mirela.", "my name is Mirela"),
        ("It's 1,000 miles.", "it's 1000 miles"),
        ("Is 65 miles an hour a lot in kilometres an hour?", "is 65 miles per hour a lot in kilometers per hour"),
        ("That's 3 kilos.", "that's 3 kilograms"),
        ("Wake me at 5.45.", "wake me at 5:45"),
        ("Wake me at 5 45 a.m.", "wake me at 5:45 am"),
        ("Wake me at 6 o’clock.", "wake me at 6:00"),
        ("At 7:30 A.M. tomorrow.", "at 7:30 am tomorrow"),
        ("Ten, nine, eight.", "10 9 8"),
        ("It is 72°F.", "it is 72 degrees fahrenheit"),
        ("Convert 3.5 kg to pounds.", "convert 3.5 kilograms to pounds"),
        ("10km in miles", "10 kilometers in miles"),
        ("5+3=", "5 + 3 equals"),
        ("What's 15% of 80?", "what's 15% of 80"),
        ("$1 and €3.50", "1 dollar and 3.50 euros"),
        ("Add eggs, milk & bread to my list!", "add eggs milk and bread to my list"),
        ("Undo it. Then start over.", "undo it then start over"),
        ("Mr. Smith said OK.", "mr smith said okay"),
        ("“I don’t know,” she said…", "i don't know she said"),
        ("Is it Monday in Paris?", "is it Monday in Paris"),
        ("My favourite colour, to-morrow.", "my favorite color tomorrow"),
        ("What is ten per cent of 80 litres?", "what is 10% of 80 liters"),
        ("Four hours in the centre of our theatre", "4 hours in the center of our theater"),
        ("Uh…", "uh"),
        ("hmm", "hmm"),
        ("Mm-hmm.", "mm hmm"),
        ("The square root of? Ah, thirty-six.", "the square root of 36"),
        ("Can you spell? Let me think. Orange for me.", "can you spell orange for me"),
        ("Can you spell let me think orange for me?", "can you spell orange for me"),
        ("How much is, let me see, 9 plus 6?", "how much is 9 + 6"),
        ("Please let me think about it.", "please let me think about it"),
        ("Now let me see my list.", "now let me see my list"),
        ("Let me think.", "let me think"),
        ("Set an alarm for seven thirty I am.", "set an alarm for 7:30 am"),
        ("Wake me up at 6:15, I'm tomorrow", "wake me up at 6:15 am tomorrow"),
        ("I'm older than 7, I am old.", "i'm older than 7 i am old"),
        ("He is 30, I am.", "he is 30 i am"),
        ("", ""),
        ("♪♪", ""),
    ],
)
def test_as_the_small_model_reads_it(engine: str, wanted: str) -> None:
    assert for_small_model(engine) == wanted
    assert for_small_model(wanted) == wanted


REQUESTS = sorted({r for r in user_utterances(11, 1200, "test") if not re.search(r"\b(uh|um|erm?|hm+|ah|mm)\b", r)})
"""Without hesitations: the small model was trained on some, and need not get any."""


def as_an_engine(spoken: str, rng: random.Random) -> str:
    """A request as an open-vocabulary engine may write it: sentences, marks, digits or hyphened numbers, ums."""
    text = as_written(spoken) if rng.random() < 0.5 else spoken
    text = re.sub(r"(\d+)%", r"\1 percent" if rng.random() < 0.3 else r"\1%", text)
    text = re.sub(r"\b(\d)(\d{3})\b(?! \w*(?:am|pm))", r"\1,\2" if rng.random() < 0.3 else r"\1\2", text)
    text = re.sub(r" ([ap])m\b", r" \1.m." if rng.random() < 0.5 else r" \1m", text)
    text = re.sub(r"\b(twenty|thirty|forty|fifty) (one|two|three|four|five|six)\b", r"\1-\2", text)
    text = re.sub(r"\bi\b", "I", text).replace("please", ", please").replace(" ,", ",")
    text = text[:1].upper() + text[1:] + rng.choice(".?!")
    return rng.choice(["", "", "Um, ", "Uh "]) + text


def test_requests_come_back_as_they_are_trained_on() -> None:
    rng = random.Random(3)
    wrong = [
        (spoken, written, back)
        for spoken in REQUESTS
        for written in [as_an_engine(spoken, rng)]
        if (back := for_small_model(written)) != as_written(spoken)
    ]
    assert wrong == []


def test_requests_in_the_small_models_own_form_stay() -> None:
    wrong = [text for text in map(as_written, REQUESTS) if for_small_model(text) != text]
    assert wrong == []


@pytest.mark.parametrize("hour", range(1, 13))
def test_every_time_of_day_in_every_writing(hour: int) -> None:
    for minute in range(60):
        wanted = f"wake me up at {hour}:{minute:02d} pm"
        assert for_small_model(f"Wake me up at {hour}:{minute:02d} p.m.") == wanted
        assert for_small_model(f"Wake me up at {hour}:{minute:02d}PM.") == wanted
        if minute > 9:
            said = spoken_number(minute).replace(" ", "-")
            assert for_small_model(f"Wake me up at {spoken_number(hour)} {said} PM.") == wanted


@given(st.text(max_size=60))
def test_any_text_is_taken(text: str) -> None:
    written = for_small_model(text)
    assert written == " ".join(written.split())
