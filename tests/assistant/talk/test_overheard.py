"""Speech over a reply: what stops it, and what is a nod."""

from dataclasses import replace

import pytest

from assistant.talk.interruption import Signal
from assistant.talk.overheard import (
    LIKELY_AFTER_MS,
    NODDED_MS,
    OVER_MS,
    SHORTEST_MS,
    SURE,
    SURE_OF_WORDS,
    UNCLEAR_MS,
    UNREAD_MS,
    Overheard,
    is_nod,
    nod_words,
    only_stops,
    verdict,
    words_behind,
)
from assistant.text.english import ENGLISH


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        (Overheard(100, 0, ""), None),
        (Overheard(224, 0, "Stop."), Signal.INTERRUPTION),  # the first look at its words
        (Overheard(224, 0, "What a"), Signal.INTERRUPTION),
        (Overheard(224, 0, "Money."), None),  # ears make words of any hum
        (Overheard(260, 96, "Money.", read=True), Signal.BACKCHANNEL),
        (Overheard(500, 0, "Tuesday."), Signal.LIKELY),
        (Overheard(640, 0, "Tuesday."), Signal.INTERRUPTION),
        (Overheard(224, 0, "Love it."), Signal.LIKELY),  # a hum again, as far as is known
        (Overheard(300, 0, "Love it."), Signal.INTERRUPTION),
        (Overheard(448, 0, "Thank you."), Signal.LIKELY),  # and what ears write for a laugh
        (Overheard(224, 0, "What?"), None),
        (Overheard(300, 0, "What?"), Signal.INTERRUPTION),
        (Overheard(224, 96, "No.", read=True), Signal.INTERRUPTION),
        (Overheard(260, 0, ""), Signal.LIKELY),
        (Overheard(260, 0, "Mm-hm."), None),
        (Overheard(480, 0, "Yeah."), Signal.LIKELY),
        (Overheard(1020, 0, "yeah yeah yeah"), Signal.LIKELY),  # a nod that is said again may last so long, …
        (Overheard(1020, 0, ""), Signal.LIKELY),  # … and a laugh
        (Overheard(1020, 0, "Money."), Signal.INTERRUPTION),
        (Overheard(1600, 0, "yeah yeah yeah"), Signal.INTERRUPTION),
        (Overheard(1600, 0, ""), Signal.INTERRUPTION),
        (Overheard(250, 96, "Yeah, okay.", read=False), None),
        (Overheard(250, 96, "Yeah, okay.", read=True), Signal.BACKCHANNEL),
        (Overheard(250, 96, "Wait", read=True), Signal.INTERRUPTION),
        (Overheard(300, 96, "", read=True), Signal.BACKCHANNEL),
        (Overheard(300, 640, "", read=False), Signal.BACKCHANNEL),  # ears that are far behind
        (Overheard(32, 96, "You."), Signal.BACKCHANNEL),  # a click
        (Overheard(400, 0, "That's it.", sure=0.3), None),  # a laugh
        (Overheard(400, 96, "That's it.", sure=0.3), Signal.BACKCHANNEL),
        (Overheard(480, 0, "Cut it out.", sure=0.45), Signal.INTERRUPTION),  # somebody shouts
        (Overheard(400, 0, "It's a", sure=0.86), Signal.LIKELY),  # what ears write for a laugh
        (Overheard(400, 96, "It's a bit.", read=True, sure=0.86), Signal.BACKCHANNEL),
        (Overheard(400, 0, "Stop it", sure=0.7), Signal.INTERRUPTION),
        (Overheard(288, 0, "And then."), Signal.LIKELY),  # what ears write for a hum
        (Overheard(352, 96, "And then.", read=True), Signal.BACKCHANNEL),
        (Overheard(640, 0, "And then."), Signal.INTERRUPTION),
        (Overheard(288, 0, "And then I said"), Signal.INTERRUPTION),
        (Overheard(320, 0, "I say."), None),  # "I see", most likely
        (Overheard(300, 0, "Yeah, but"), Signal.INTERRUPTION),
        (Overheard(224, 0, "Okay, stop"), Signal.INTERRUPTION),
    ],
)
def test_verdict(heard, expected):
    assert verdict(heard, ENGLISH) is expected


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        (Overheard(224, 0, "And then."), Signal.LIKELY),  # a nod, misread: silence, and a little later …
        (Overheard(256, 96, "Mm-hm.", read=True), Signal.BACKCHANNEL),  # … it is one
        (Overheard(256, 96, "And then.", read=True), Signal.BACKCHANNEL),
        (Overheard(256, 96, "What time?", read=True), Signal.INTERRUPTION),
        (Overheard(256, 96, "Love it.", read=True), Signal.BACKCHANNEL),
        (Overheard(260, 0, "Tuesday."), Signal.LIKELY),  # no nod's word: silence at once
        (Overheard(260, 0, "Yeah."), None),
        (Overheard(480, 0, "And then."), Signal.LIKELY),
        (Overheard(640, 0, "And then."), Signal.LIKELY),
        (Overheard(720, 0, "And then."), Signal.INTERRUPTION),
        (Overheard(480, 0, "Tell me"), Signal.INTERRUPTION),
        (Overheard(384, 96, "Watch it!", read=True, sure=0.8), Signal.INTERRUPTION),
        (Overheard(384, 96, "Watch it!", read=True), Signal.INTERRUPTION),
        (Overheard(384, 96, "Watch it!", read=False), None),  # ears are still at it
        (Overheard(384, 0, "Yeah."), Signal.LIKELY),
        (Overheard(224, 0, "Stop."), Signal.INTERRUPTION),
        (Overheard(1600, 0, "mm"), Signal.INTERRUPTION),
    ],
)
def test_a_front_that_is_silent_meanwhile_gives_the_verdict_time(heard, expected):
    assert verdict(heard, ENGLISH, holds=True) is expected


def test_a_yes_to_a_question_about_a_call_is_meant_once_it_is_read():
    yes = Overheard(250, 96, "Yes.", read=True, agrees=True)
    for known in (ENGLISH, None):
        assert verdict(yes, known) is Signal.INTERRUPTION
        assert verdict(replace(yes, read=False, words="", agrees=False), known) is None  # it may be a yes
        assert verdict(replace(yes, words="Mm-hm.", agrees=False), known) is Signal.BACKCHANNEL
        assert verdict(replace(yes, sure=0.5), known) is Signal.BACKCHANNEL  # a cough
    assert verdict(replace(yes, agrees=None), ENGLISH) is Signal.BACKCHANNEL


def test_words_where_a_nod_was_read_are_not_believed_at_once():
    """Of a nod in an accent, or a laugh, the next look finds other words. Behind a nod they are meant."""
    heard = Overheard(640, 0, "With her.", nodded=True)
    over = replace(heard, silence_ms=OVER_MS, read=True)
    for holds in (False, True):
        assert verdict(heard, ENGLISH, holds) is Signal.LIKELY and verdict(over, ENGLISH, holds) is Signal.BACKCHANNEL
        assert verdict(replace(over, nodded=False), ENGLISH, holds) is Signal.INTERRUPTION
        assert verdict(replace(heard, speech_ms=NODDED_MS), ENGLISH, holds) is Signal.INTERRUPTION
        assert verdict(replace(heard, goes_on=True), ENGLISH, holds) is Signal.INTERRUPTION
        for words in ("Yeah, but how?", "Stop.", "What time?", "I'm out of here."):
            assert verdict(replace(heard, words=words), ENGLISH, holds) is Signal.INTERRUPTION, words


@pytest.mark.parametrize(
    ("text", "before", "behind"),
    [
        ("What time is it?", "what time is it", ""),
        ("What time is 8?", "what time is it", ""),  # the same sound, read again
        ("what time is it, uh", "What time is it?", "uh"),
        ("I set a timer for 10 minutes, um", "Set a timer for ten minutes.", "um"),
        ("Set an alarm for 7am. No, eight.", "Set an alarm for seven a m..", "No, eight."),  # as long as the first part
        ("What is fifty minus eight? No minus nine.", "What is 50 minus 8?", "No minus nine."),
        ("Tell me a story about a king. No, a queen.", "Tell me a story about King.", "No, a queen."),
        ("Set the timer, no, the alarm", "Set the timer.", "no, the alarm"),
        ("", "what time is it", ""),
        ("and how late is it", "", "and how late is it"),
    ],
)
def test_the_words_behind_an_earlier_reading_are_found_however_that_is_written_now(text, before, behind):
    assert words_behind(text, before) == behind


def test_hums_and_laughs_are_nods_however_ears_spell_them():
    for text in ("Mm-hmm.", "Uh-huh", "Uh-oh-oh-oh-", "Hehehe.", "Ha ha!", "hahahah", "Ho-ho", "M. M. H. M..", "mhm"):
        assert is_nod(text, ENGLISH), text
    for text in ("He", "Hello", "How", "Home", "To-morrow", "Hahaha, stop"):
        assert not is_nod(text, ENGLISH), text


def test_who_goes_on_with_a_turn_that_was_taken_early_is_not_taken_for_a_nod():
    tea = Overheard(64, 96, "Tea.", read=True)
    assert verdict(tea, ENGLISH) is Signal.BACKCHANNEL
    assert verdict(replace(tea, goes_on=True), ENGLISH) is Signal.INTERRUPTION
    assert verdict(replace(tea, goes_on=True), ENGLISH, holds=True) is Signal.INTERRUPTION
    begun = replace(tea, words="", goes_on=True)  # "T"
    assert verdict(begun, ENGLISH) is None and verdict(replace(begun, silence_ms=600), ENGLISH) is Signal.BACKCHANNEL
    assert verdict(replace(tea, words="Mhm.", goes_on=True), ENGLISH) is Signal.BACKCHANNEL


def test_a_soft_beginning_of_who_goes_on_is_no_cough():
    """"Twelve", of which the detector is sure of the vowel alone; a cough is one after as long a silence as a sound
    whose words never come."""
    soft = Overheard(128, OVER_MS, "Start a timer for a moment.", sure=SURE_OF_WORDS - 0.01)
    assert verdict(soft, ENGLISH) is Signal.BACKCHANNEL
    assert verdict(replace(soft, speech_ms=32, goes_on=True), ENGLISH) is Signal.BACKCHANNEL, "a click"
    for heard in (replace(soft, goes_on=True), replace(soft, words="", sure=0.5, goes_on=True)):
        assert verdict(heard, ENGLISH) is None and verdict(replace(heard, silence_ms=UNREAD_MS - 1), ENGLISH) is None
        assert verdict(replace(heard, silence_ms=UNREAD_MS), ENGLISH) is Signal.BACKCHANNEL


def test_words_that_only_stop():
    for text in ("Stop.", "no", "Wait!", "Hold on.", "What time is it? Stop."):
        assert only_stops(text, ENGLISH), text
    for text in ("", "Stop the timer.", "No, I meant tomorrow.", "Wait. What day is it?", "stop and go"):
        assert not only_stops(text, ENGLISH), text


def test_a_nod_is_told_in_the_words_of_whichever_pass_read_one():
    def read(*texts, **known):
        told = ""
        for text in texts:
            told = nod_words(Overheard(200, 0, text, **known), told, ENGLISH)
        return told

    assert read("You.", "Uh-huh.", "Hell!", "") == "Uh-huh."
    assert read("Yeah.", "Yes.") == "Yes." and read("Mh.") == "Mh."
    assert read("Money.") == "Mm." and read("Money.", "Mm-hm.") == "Mm-hm."  # ears make words of any hum
    assert read("Money.", sure=0.5) == "" and read("", "...") == ""


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("words", ["", "Ja, genau.", "Stop.", "mhm", "Moment mal, wie spät ist es"])
def test_without_a_list_time_and_loudness_decide(words, holds):
    def judged(speech_ms, silence_ms=0.0, **known):
        return verdict(Overheard(speech_ms, silence_ms, words, **known), None, holds)

    for read in (False, True):
        assert judged(LIKELY_AFTER_MS - 1, read=read) is None
        assert judged(LIKELY_AFTER_MS, read=read) is judged(UNCLEAR_MS - 1, read=read) is Signal.LIKELY
        assert judged(UNCLEAR_MS, read=read) is Signal.INTERRUPTION
        assert judged(UNCLEAR_MS - 1, OVER_MS, read=read) is Signal.BACKCHANNEL
        assert judged(SHORTEST_MS - 1, read=read) is None
        assert judged(UNCLEAR_MS, sure=SURE - 0.01, read=read) is None, "a laugh"
        assert judged(UNCLEAR_MS, OVER_MS, sure=SURE - 0.01, read=read) is Signal.BACKCHANNEL
        assert judged(LIKELY_AFTER_MS, goes_on=True, read=read) is Signal.INTERRUPTION


def test_without_a_list_a_nod_stands_as_it_was_read_and_nothing_only_stops():
    assert nod_words(Overheard(400, 0, "Ja, genau."), "", None) == "Ja, genau."
    assert nod_words(Overheard(400, 0, ""), "Ja.", None) == nod_words(Overheard(32, 0, "Nein"), "Ja.", None) == "Ja."
    assert not only_stops("Stop.", None)
