"""Whole recordings: cut at pauses, and without one at the quietest place near; nothing twice and nothing lost."""

import random
from itertools import pairwise

import numpy as np
import pytest

from assistant.asr.cutting import quietest_place
from assistant.asr.recording import LONGEST_S, PADDING_S, Dictation, Stretches, write_down
from assistant.contracts import SpeechBlock
from tests.fakes.models import FakeEars

RATE, BLOCK = 16_000, 512


def blocks(pcm: np.ndarray, spoken: list[tuple[float, float]]) -> list[SpeechBlock]:
    """A detector that is sure of speech in these times, with a second of silence behind the sound."""
    ends = range(BLOCK, pcm.size + RATE + BLOCK, BLOCK)
    sure = [any(begin <= end / RATE <= over for begin, over in spoken) for end in ends]
    each = zip(ends, sure, strict=True)
    return [SpeechBlock(end - BLOCK, BLOCK, float(one), pcm[end - BLOCK : end]) for end, one in each]


def stretches(heard: list[SpeechBlock], pcm: np.ndarray) -> list[tuple[float, float]]:
    def quiet_place(start: float) -> float | None:
        first, over = round(start * RATE), round((start + LONGEST_S) * RATE)
        return None if over > pcm.size else start + quietest_place(pcm[first:over], LONGEST_S / 2) / RATE

    found = Stretches(RATE, quiet_place)
    each = [*(found.add_block(block) for block in heard), found.end_open()]
    return [one for one in each if one is not None]


def noise(seconds: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)


@pytest.mark.parametrize("seed", range(12))
def test_speech_without_a_pause_is_cut_where_it_is_quietest(seed: int) -> None:
    chosen = random.Random(seed)
    seconds = chosen.uniform(45, 100)
    pcm = noise(seconds, seed)
    dips = [at + chosen.uniform(0, 1) for at in np.arange(3, seconds, chosen.uniform(3, 7))]
    for at in dips:
        pcm[round(at * RATE) : round((at + 0.12) * RATE)] *= 0.02
    found = stretches(blocks(pcm, [(0, seconds)]), pcm)
    assert found[0][0] == 0 and found[-1][1] == pytest.approx(seconds + PADDING_S, abs=0.1)
    assert all(end == start for (_, end), (start, _) in pairwise(found)), "nothing twice, nothing lost"
    assert all(end - start <= LONGEST_S + PADDING_S for start, end in found)
    for _, cut in found[:-1]:
        assert any(at <= cut <= at + 0.12 for at in dips), "in the middle of a word"


def test_a_hum_as_loud_everywhere_is_cut_too() -> None:
    pcm = (0.1 * np.sin(np.arange(65 * RATE) * 0.05)).astype(np.float32)
    found = stretches(blocks(pcm, [(0, 65)]), pcm)
    assert all(LONGEST_S / 2 <= end - start <= LONGEST_S for start, end in found[:-1])
    assert all(end == start for (_, end), (start, _) in pairwise(found))


@pytest.mark.parametrize("seed", range(6))
def test_pauses_still_end_a_stretch(seed: int) -> None:
    """With a cut shortly before a pause, too: no stretch is empty or runs backwards."""
    chosen = random.Random(seed)
    spoken, at = [], 0.5
    while at < 80:
        end = at + chosen.choice([0.8, 5.0, 19.7, 19.9, 20.1, 23.0])
        spoken.append((at, end))
        at = end + chosen.uniform(0.9, 2.0)
    pcm = noise(at, seed)
    for (_, end), (start, _) in pairwise(spoken):
        pcm[round(end * RATE) : round(start * RATE)] = 0
    found = stretches(blocks(pcm, spoken), pcm)
    assert all(0 <= start < end for start, end in found)
    assert all(end <= start for (_, end), (start, _) in pairwise(found))
    for begin, end in spoken:
        covered = sum(min(end, over) - max(begin, first) for first, over in found if over > begin and first < end)
        assert covered >= end - begin - BLOCK / RATE


@pytest.mark.parametrize("seed", range(4))
def test_sound_that_comes_in_pieces_is_written_down_as_the_whole_recording(seed: int) -> None:
    """With a stretch that is cut, where the transcriber must go back."""
    chosen, ears = random.Random(seed), FakeEars()
    quiet = np.zeros(RATE, np.float32)
    said = [ears.spoken("turn on the light", 1.5), ears.spoken(" ".join(map(str, range(60))), 30.0),
            ears.spoken("and thanks", 0.7)]  # fmt: skip
    pcm = np.concatenate([quiet, said[0], quiet, said[1], quiet[: RATE // 3], said[2]])
    whole = write_down(ears, pcm)
    assert len(whole) == 4 and whole[0].text == "turn on the light" and whole[3].text.endswith("and thanks")
    dictation, found, at = Dictation(ears), [], 0
    while at < pcm.size:
        size = chosen.randint(1, RATE // 2)
        found += dictation.add_sound(pcm[at : at + size])
        dictation.certain_words()
        at += size
    found += dictation.end_sound()
    dictation.give_back()
    assert found == whole
