"""The transcriber: words with partials, silence is refused, one utterance leaves the next alone."""

import numpy as np
import pytest

from assistant.asr.pocketsphinx import PocketsphinxTranscriber
from assistant.contracts import Transcript


@pytest.fixture(scope="module")
def ear():
    return PocketsphinxTranscriber()


def hear(ear, pcm, chunk=1_280):
    partials = [ear.push(pcm[start : start + chunk]) for start in range(0, len(pcm), chunk)]
    return ear.final(), partials


@pytest.mark.slow
@pytest.mark.parametrize("text", ["set a timer for five minutes", "what happened to the dragon"])
def test_a_command_is_heard_word_for_word(ear, spoken, text):
    heard, partials = hear(ear, spoken(text))
    assert heard.text == text
    assert heard.understood
    assert 0 < heard.confidence <= 1
    growing = [p for p in partials if p]
    assert len(growing) > 5 and len(set(growing)) > 3
    assert set(growing[len(growing) // 2].split()) & set(text.split())  # half-way, some of the words are there


def test_silence_is_not_understood(ear):
    heard, _ = hear(ear, np.zeros(16_000, np.float32))
    assert not heard.understood


def test_nothing_pushed_is_nothing_heard(ear):
    assert ear.final() == Transcript("", 0.0, False)
    ear.reset()
    assert ear.partial == ""


@pytest.mark.slow
def test_reset_drops_the_utterance(ear, spoken):
    ear.push(spoken("tell me a story"))
    assert ear.partial
    ear.reset()
    assert ear.partial == ""
    heard, _ = hear(ear, spoken("what time is it"))
    assert "story" not in heard.text and "time" in heard.text


@pytest.mark.slow
def test_a_known_speaker_is_heard_alike_in_every_talk(ear, spoken):
    """What one talk learnt is gone in the next: the same sounds give the same transcripts."""
    sounds = [spoken("set a timer for five minutes"), spoken("what time is it")]
    talks = []
    for _ in range(2):
        ear.forget()
        talks.append([hear(ear, sound)[0] for sound in sounds])
    assert talks[0] == talks[1]


@pytest.mark.parametrize("loudness", [2.0, 0.05])
def test_a_loud_microphone_and_a_quiet_one_are_heard_from_the_first_word(spoken, loudness):
    heard, _ = hear(PocketsphinxTranscriber(), spoken("set a timer for five minutes") * np.float32(loudness))
    assert heard.text == "set a timer for five minutes"
    assert heard.understood


def test_what_is_shorter_than_the_wait_is_heard_at_the_end(ear, spoken):
    ear.forget()
    sound = spoken("stop")[:12_000]
    assert ear.push(sound) == ""
    assert ear.final().confidence > 0


def test_a_strict_threshold_refuses(spoken):
    strict = PocketsphinxTranscriber(understood=1.1)
    heard, _ = hear(strict, spoken("what time is it"))
    assert heard.text and not heard.understood


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [160, 333, 16_000])
def test_any_chunk_size_gives_the_same_transcripts(ear, spoken, chunk):
    sounds = [spoken("set a timer for five minutes"), spoken("what time is it") * np.float32(0.2)]
    talks = []
    for size in (1_280, chunk):
        ear.forget()
        talks.append([hear(ear, sound, size)[0] for sound in sounds])
    assert talks[0] == talks[1]
    assert "timer for five minutes" in talks[0][0].text


@pytest.mark.slow
def test_the_speaker_is_learnt_from_what_was_understood_and_forgotten_with_the_talk(ear, spoken):
    """The same sound after the same talk is weighed otherwise if that talk was not understood; pushes do not matter."""
    sounds = [spoken("set a timer for five minutes"), spoken("what time is it")]

    def talk(ear, chunk=1_280):
        ear.forget()
        return [hear(ear, sound, chunk)[0] for sound in sounds]

    once = talk(ear)
    assert [heard.text for heard in once] == ["set a timer for five minutes", "what time is it"]
    assert talk(ear, 333) == once
    without = talk(PocketsphinxTranscriber(understood=1.1))
    assert without[0].confidence == once[0].confidence
    assert without[1].confidence != once[1].confidence
