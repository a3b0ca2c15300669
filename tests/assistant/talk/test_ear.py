"""The ear alone: sound in, frozen observations out, however the sound is cut."""

import asyncio
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.events import SemanticVad, ServerVad
from assistant.talk.ear import Ear, Noted, TalkNow, padding_ms
from assistant.talk.scribe import Scribe
from assistant.talk.turn_end import Sign, WordsSoFar
from assistant.talk.turn_taking import Joinable
from assistant.talk.waiting import Waiting
from tests.fakes.models import FakeEars, counting_ids
from tests.fakes.talk import inline

RATE = 16_000
SERVER, SEMANTIC = TalkNow(ServerVad()), TalkNow(SemanticVad())


class Bench:
    """An ear over fake models, and what it noted. `steps`: (silence before, words, seconds of speech)."""

    def __init__(self, *steps):
        self.ears, ids = FakeEars(), counting_ids()
        self.scribe = Scribe(self.ears, inline)
        asyncio.run(self.scribe.open())
        self.ear = Ear(self.ears.detector(), self.scribe, lambda: ids("item"), Waiting(self.scribe, None))
        parts = []
        for silence_s, words, speech_s in steps:
            parts += [np.zeros(round(silence_s * RATE), np.float32), self.ears.spoken(words, speech_s)]
        self.sound = np.concatenate([*parts, np.zeros(2 * RATE, np.float32)])
        self.notes: list[Noted] = []
        self.at = 0

    def hears(self, seconds, talk, slice_samples=320):
        """So much more of the sound, in slices; `now` is the time of the sound itself."""
        end = min(self.sound.size, self.at + round(seconds * RATE))
        while self.at < end:
            part = self.sound[self.at : min(end, self.at + slice_samples)]
            digested = self.ear.take_in(part, None, replace(talk, now=(self.at + part.size) / RATE))
            self.at += digested.taken
            self.notes += digested.notes
        return self.notes

    @property
    def signs(self):
        return [(note.sign, note.at, note.stretch.item_id) for note in self.notes if note.sign is not None]

    @property
    def words(self):
        return asyncio.run(self.scribe.final()).text


def test_a_turn_is_an_onset_a_pause_and_an_end_with_all_of_its_sound():
    bench = Bench((0.512, "what time is it", 1.024))
    bench.hears(4, SERVER)
    begin, end = round(0.512 * RATE), round(1.536 * RATE)
    assert bench.signs == [(Sign.ONSET, begin, "item_1"), (Sign.PAUSE, end, "item_1"), (Sign.END, end, "item_1")]
    last = bench.notes[-1]
    padding = padding_ms(ServerVad()) * RATE // 1000
    assert last.stretch.samples == padding + (end - begin) + 512 * 16  # and the silence of the turn's end, in blocks
    assert last.speech_ms == pytest.approx(1024) and last.power == pytest.approx(0.201**2, rel=1e-3)
    assert bench.ear.so_far.stretch is None and bench.words == "what time is it"
    with pytest.raises(FrozenInstanceError):
        last.at = 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=12), st.sampled_from([SERVER, SEMANTIC]))
def test_however_the_sound_is_cut_the_same_is_noticed(sizes, talk):
    def bench():
        return Bench((0.3, "what time is it", 0.7), (1.9, "and now", 0.4), (2.0, "", 0.02))

    whole, cut = bench(), bench()
    whole.hears(9, talk, whole.sound.size)
    while cut.at < cut.sound.size:
        for size in sizes:
            cut.hears(size / RATE, talk, size)
    assert cut.signs == whole.signs and [sign for sign, _, _ in whole.signs].count(Sign.END) == 2
    ends = [[note.stretch.samples for note in one.notes if note.sign is Sign.END] for one in (whole, cut)]
    assert ends[0] == ends[1]


def test_nothing_behind_a_turns_end_is_taken():
    bench = Bench((0.3, "hello", 0.5))
    digested = bench.ear.take_in(bench.sound, None, SERVER)
    assert digested.notes[-1].sign is Sign.END and digested.taken < bench.sound.size
    assert digested.taken % 512 == 0 and bench.ear.uncommitted_ms == 0


@pytest.mark.parametrize("until", [1.0, 5.0])
def test_speech_that_goes_on_is_written_down_with_the_turn_before(until):
    bench = Bench((0.5, "what time", 0.6), (1.0, "is it", 0.6))
    bench.hears(1.9, SERVER)
    assert bench.words == "what time"
    bench.hears(4, replace(SERVER, joinable=Joinable("item_1", until)))
    second = [note for note in bench.notes if note.stretch.item_id == "item_2"]
    onset, end = [note for note in second if note.sign in (Sign.ONSET, Sign.END)]
    joins = until == 5.0
    assert onset.stretch.joins == end.stretch.joins == ("item_1" if joins else None)
    assert onset.at / RATE == pytest.approx(2.1, abs=0.04)
    assert bench.words == ("what time is it" if joins else "is it")
    assert (end.stretch.samples > 1.6 * RATE) == joins


def test_another_turn_than_the_last_is_not_joined():
    bench = Bench((0.5, "what time", 0.6), (1.0, "is it", 0.6))
    bench.hears(4, replace(SERVER, joinable=Joinable("item_0", 9.0)))
    assert all(note.stretch.joins is None for note in bench.notes)


def test_a_stretch_that_is_set_aside_is_forgotten_with_the_next_slice():
    bench = Bench((0.3, "mhm", 0.4))
    bench.hears(0.6, SERVER)
    assert bench.ear.so_far.stretch.item_id == "item_1"
    bench.hears(0.02, replace(SERVER, set_aside="item_0"))
    assert bench.ear.so_far.stretch is not None
    bench.hears(0.02, replace(SERVER, set_aside="item_1"))
    bench.hears(3, SERVER)
    assert Sign.END not in [sign for sign, _, item_id in bench.signs if item_id == "item_1"]


def test_what_is_known_of_the_words_ends_a_turn_sooner_or_later():
    ends = []
    for words in (WordsSoFar(4, 0.9), WordsSoFar(), WordsSoFar(4, None, held=True)):
        bench = Bench((0.3, "what time is it", 1.0))
        bench.hears(1.35, SEMANTIC)
        for _ in range(150):
            bench.hears(0.02, replace(SEMANTIC, words=words))
        [end] = [n for n, note in enumerate(bench.notes) if note.sign is Sign.END]
        ends.append(bench.notes[end].stretch.samples)
    assert ends[0] < ends[1] < ends[2]


def test_speech_that_is_judged_is_reported_at_every_block():
    def reports(talk):
        bench = Bench((0.32, "wait a minute", 1.0))
        bench.hears(1.3, talk)
        return [note.speech_ms for note in bench.notes if note.sign is None]

    others = reports(SERVER)
    assert len(others) > 5 and np.diff(others).min() >= 96
    judged = reports(replace(SERVER, over_reply=True, judged=True))
    assert len(judged) > 2.5 * len(others) and judged[0] < 96


def test_without_detection_all_sound_is_kept_until_it_is_committed_or_cleared():
    by_hand = TalkNow(None)
    bench = Bench((0.5, "hello there", 1.0))
    bench.hears(1.5, by_hand)
    assert bench.notes == [] and bench.ear.uncommitted_ms == 1500
    note = bench.ear.commit(())
    assert (note.sign, note.at, note.stretch.samples, note.stretch.announced) == (Sign.END, 24_000, 24_000, False)
    assert bench.words == "hello there" and bench.ear.uncommitted_ms == 0
    bench.hears(0.5, by_hand)
    assert [bench.ear.clear_uncommitted() for _ in range(2)] == ["item_2", None] and bench.ear.uncommitted_ms == 0
    assert bench.ear.close_stretch() is None


def test_a_commit_by_hand_takes_what_the_detector_took_for_noise():
    bench = Bench((0.5, "", 0.032))
    bench.hears(1.0, SERVER)
    assert bench.signs == [] and bench.ear.commit(()).stretch.samples == RATE
