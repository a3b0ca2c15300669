"""When a turn begins and when it ends: by silence, and by how complete its words are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.events import SemanticVad, ServerVad
from assistant.talk.turn_end import (
    COMPLETE,
    LINGER_MS,
    LONGEST_END_MS,
    OPEN,
    RISE_MS,
    SHORTEST_END_MS,
    USUAL_RISE_MS,
    Sign,
    TurnDetector,
    WordsSoFar,
    end_silence_ms,
    heard_words,
)
from assistant.text.english import ENGLISH

BLOCK = 512


def signs(pattern, detection=None, words=None):
    """Runs of (speech?, blocks) → [(sign, block)]."""
    detector, out, at = TurnDetector(detection or ServerVad(), 16_000), [], 0
    for loud, blocks in pattern:
        for _ in range(blocks):
            at += 1
            sign = detector.step(0.9 if loud else 0.0, BLOCK)
            if words is not None and sign is Sign.PAUSE:
                detector.know(words)
            if sign is not None:
                out.append((sign, at))
            if sign is Sign.END:
                detector.forget_turn()
    return out


def test_one_block_is_a_click_two_are_speech():
    assert signs([(0, 10), (1, 1), (0, 30)]) == []
    assert signs([(0, 10), (1, 2), (0, 30)])[0] == (Sign.ONSET, 12)


def test_a_turn_ends_after_the_silence_that_was_asked_for():
    found = dict(signs([(1, 20), (0, 40)], ServerVad(silence_duration_ms=500)))
    assert found[Sign.END] == 20 + 16  # the first multiple of 32 ms at or past 500
    assert (Sign.RESUMED, 27) in signs([(1, 20), (0, 6), (1, 5), (0, 40)])


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=12))
def test_every_turn_that_begins_ends_within_so_much_silence(pattern):
    found = signs([*pattern, (False, 60)], SemanticVad("low"), WordsSoFar(2, 0.0, True))
    begun = sum(sign is Sign.ONSET for sign, _ in found)
    assert begun == sum(sign is Sign.END for sign, _ in found)


@given(st.sampled_from(["low", "medium", "high", "auto"]), st.none() | st.floats(0, 1), st.integers(0, 40),
       st.floats(0, 20_000), st.booleans())  # fmt: skip
def test_every_semantic_wait_has_bounds(eagerness, complete, count, speech_ms, held):
    wait = end_silence_ms(SemanticVad(eagerness), WordsSoFar(count, complete, held), speech_ms)
    assert SHORTEST_END_MS <= wait <= LONGEST_END_MS


def test_complete_words_wait_least_and_eagerness_orders():
    waits = [end_silence_ms(SemanticVad("auto"), WordsSoFar(4, p), 1500) for p in (0.0, 0.3, 0.7, 1.0)]
    assert waits == sorted(waits, reverse=True) and waits[0] > waits[-1]
    unfinished = [end_silence_ms(SemanticVad(e), WordsSoFar(4, 0.0), 1500) for e in ("high", "auto", "low")]
    assert unfinished == sorted(unfinished)
    slow, quick = (end_silence_ms(SemanticVad(), WordsSoFar(6, 0.5), ms) for ms in (6000, 1500))
    assert slow > quick


def test_a_judgement_counts_by_how_many_times_likelier_it_is():
    """So many times likelier is as much nearer to complete, wherever it begins."""
    steps = (OPEN, (OPEN * COMPLETE) ** 0.5, COMPLETE)
    low, middle, high = (end_silence_ms(SemanticVad(), WordsSoFar(2, p), 600) for p in steps)
    assert high == SHORTEST_END_MS and low - middle == pytest.approx(middle - high)


def test_a_filler_holds_the_turn_open_whatever_the_model_thinks_of_the_words():
    held, sure = heard_words("Set a timer for, um.", 0.9, ENGLISH), heard_words("What time is it?", 0.9, ENGLISH)
    assert held.held and not sure.held
    bound = heard_words("Set the", 0.0, ENGLISH)
    waits = [end_silence_ms(SemanticVad(), words, 1500) for words in (held, bound, sure)]
    assert waits[0] >= waits[1] > 900 and waits[2] == SHORTEST_END_MS


def test_how_sure_the_detector_is_counts_from_the_first_to_the_last_block_of_speech():
    detector = TurnDetector(ServerVad(), 16_000)
    for probability in (0.0, 0.6, 0.8, 0.2, 0.4, 0.0, 0.0):
        detector.step(probability, BLOCK)
    assert abs(detector.sure - (0.6 + 0.8 + 0.2 + 0.4) / 4) < 1e-9


def falls(*powers):
    """Blocks of speech of these mean squares, then silence → the signs but the onset and the end."""
    detector, found = TurnDetector(SemanticVad(), 16_000), []
    for power in powers:
        found.append(detector.step(0.9, BLOCK, power))
    found += [detector.step(0.0, BLOCK, 0.0) for _ in range(3)]
    return [sign for sign in found if sign not in (None, Sign.ONSET, Sign.END)], detector


def test_the_voice_falls_once_and_rises_again():
    assert falls(1, 1, 1, 1e-4, 1e-4)[0] == [Sign.FALLEN, Sign.PAUSE]
    assert falls(1, 1, 1, 1e-4, 1, 1)[0] == [Sign.FALLEN, Sign.RESUMED, Sign.PAUSE]
    assert falls(1, 1, 1, 0.1, 0.1)[0] == [Sign.PAUSE], "ten decibels are no fall"


def test_a_silence_behind_a_fall_is_the_same_fall():
    _, detector = falls(1, 1, 1, 1e-4)
    assert detector.fall == 1
    _, risen = falls(1, 1, 1, 1e-4, 1)
    assert risen.fall == 2


@pytest.mark.parametrize(("soft", "blocks"), [(0, 6), (1, 6), (2, 5), (4, 3), (5, 2), (6, 2)])
def test_a_complete_turn_ends_so_long_after_the_voice_fell_and_never_before_a_pause(soft, blocks):
    """Six blocks behind the first soft one; what a client asks for is counted in silence."""
    for detection, expected in ((SemanticVad(), blocks), (ServerVad(silence_duration_ms=160), 5)):
        detector, found = TurnDetector(detection, 16_000), []
        for power in [1.0] * 10 + [1e-4] * soft:
            detector.step(0.9, BLOCK, power)
        detector.know(WordsSoFar(2, 1.0))
        while Sign.END not in found:
            found.append(detector.step(0.0, BLOCK, 0.0))
        assert len(found) == expected and found[0] is Sign.PAUSE


def test_who_stays_soft_speaks_softly():
    blocks = int(LINGER_MS / 32) + 2
    signs_found, _ = falls(1, 1, 1, *[1e-4] * blocks)
    assert signs_found == [Sign.FALLEN, Sign.RESUMED, Sign.PAUSE]


ROOM, VOICE = 1e-6, 1e-3


def onset(blocks, quick=True):
    """Blocks of (probability, power) and one more that the detector believes in → how much speech there was by then."""
    detector = TurnDetector(SemanticVad(), 16_000)
    detector.quick = quick
    for probability, power in blocks:
        assert detector.step(probability, BLOCK, power) is not Sign.ONSET
    while detector.step(0.9, BLOCK, VOICE) is not Sign.ONSET:
        pass
    return detector.speech_ms


def test_who_shouts_over_a_reply_has_spoken_since_the_sound_rose():
    """The detector takes six blocks to believe it; of an ordinary voice two, and these are not counted."""
    room, shout = [(0.02, ROOM)] * 20, [(0.1, VOICE)] * 6
    assert onset([*room, *shout]) == 7 * 32 - USUAL_RISE_MS
    assert onset([*room, *shout], quick=False) == 2 * 32, "elsewhere nothing is judged"
    assert onset([*room, (0.1, VOICE)]) == onset(room) == 32
    assert onset([(0.1, VOICE)] * 40) == 32, "what was never quieter did not rise"
    assert RISE_MS - USUAL_RISE_MS - 32 < onset([*room, *shout * 3]) <= RISE_MS - USUAL_RISE_MS


def test_our_own_voice_right_before_is_not_counted_as_the_users():
    assert onset([*[(0.02, ROOM)] * 20, *[(0.0, VOICE)] * 6]) == 32
    assert onset([*[(0.02, ROOM)] * 20, *[(0.0, VOICE)] * 3, *[(0.1, VOICE)] * 4]) == 5 * 32 - USUAL_RISE_MS


def test_nor_is_what_came_before_and_was_judged_already():
    detector = TurnDetector(SemanticVad(), 16_000)
    detector.quick = True
    for probability, power in [*[(0.02, ROOM)] * 20, (0.9, VOICE), *[(0.1, VOICE)] * 4]:
        detector.step(probability, BLOCK, power)
    detector.forget_turn()
    detector.step(0.9, BLOCK, VOICE)
    assert detector.speech_ms == 32


@pytest.mark.parametrize("quick", [True, False])
def test_a_turn_that_began_over_a_reply_did_so_until_it_is_over(quick):
    detector = TurnDetector(SemanticVad(), 16_000)
    detector.quick = quick
    while detector.step(0.9, BLOCK) is not Sign.ONSET:
        assert not detector.over_reply
    detector.quick = False
    detector.step(0.9, BLOCK)
    assert detector.over_reply is quick
    detector.forget_turn()
    assert not detector.over_reply
