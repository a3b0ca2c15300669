"""Which words steer a talk: those of the one language that ears hear, or none; then time and loudness decide."""

from dataclasses import replace

import pytest

from assistant.events import (
    AudioCommitted,
    CreateItem,
    CreateResponse,
    Duck,
    Message,
    Nod,
    ResponseCreated,
    ResponseDone,
    Resume,
    SemanticVad,
    Settings,
    SpeechStarted,
    SpeechStopped,
    StopPlayback,
    TextPart,
)
from assistant.text.english import ENGLISH
from assistant.text.languages import LISTS, talk_words
from tests.fakes.models import FakeEars
from tests.fakes.talk import World

STEERING = (
    AudioCommitted, Duck, Nod, ResponseCreated, ResponseDone, Resume, SpeechStarted, SpeechStopped, StopPlayback,
)  # fmt: skip
WORDS = ("ja genau", "stop", "mhm", "set a timer for um", "wie spät ist es denn jetzt eigentlich")


def test_a_list_is_chosen_by_the_only_language_that_is_heard():
    assert talk_words(("en",)) is talk_words(("en-US", "en-GB")) is talk_words(("EN",)) is ENGLISH is LISTS["en"]
    assert talk_words(()) is talk_words(("de",)) is talk_words(("en", "de")) is None


def steered(words, speech_s, language, duck):
    """When the front was told what, in a talk that is talked over for so long, and then asked something."""
    ears = FakeEars()
    ears.facts = replace(ears.facts, languages=(language,))
    settings = Settings(persona="ada", turn_detection=SemanticVad(), duck=duck)
    world = World(lambda prompt: ["one " * 20], settings, asr=ears)
    world.asr = ears
    begin = (0.0, CreateItem(Message("u", "user", (TextPart("count"),)))), (0.1, CreateResponse())
    world.play(*begin, (1.5, (words, speech_s)), (14.0, (words, 1.5)), until=20)
    return [(type(got.event).__name__, round(got.at, 6)) for got in world.log if isinstance(got.event, STEERING)]


@pytest.mark.parametrize("duck", [False, True], ids=["stock", "page"])
@pytest.mark.parametrize("speech_s", [0.2, 0.5, 0.6, 0.8, 1.2])
def test_a_talk_in_a_language_without_a_list_is_steered_by_time_and_loudness_only(speech_s, duck):
    heard = {words: steered(words, speech_s, "de", duck) for words in WORDS}
    first = heard[WORDS[0]]
    assert all(events == first for events in heard.values())
    stopped = any(name == "SpeechStarted" and at < 10 for name, at in first)
    assert stopped == (speech_s > 0.7) and [name for name, at in first if at > 14.0].count("AudioCommitted") == 1


def test_the_same_words_steer_a_talk_in_english():
    stopping, nodding = (steered(words, 0.5, "en", duck=True) for words in ("stop", "mhm"))
    assert ("StopPlayback" in dict(stopping), "Nod" in dict(stopping)) == (True, False)
    assert ("StopPlayback" in dict(nodding), "Nod" in dict(nodding)) == (False, True)


def test_a_second_language_is_one_row_more(monkeypatch):
    words, nods = "ja genau", replace(ENGLISH, nods=frozenset(["ja", "genau"]))
    assert "SpeechStarted" in dict(event for event in steered(words, 0.8, "de", duck=True) if event[1] < 10)
    monkeypatch.setitem(LISTS, "de", nods)
    early = dict(event for event in steered(words, 0.8, "de", duck=True) if event[1] < 10)
    assert "Nod" in early and "SpeechStarted" not in early
