"""Who hardly stands out begins no turn, nor who is far below the user among other voices; alone everybody does."""

from copy import deepcopy

import pytest

from assistant.events import SemanticVad, ServerVad
from assistant.talk.own_level import ALONE, FAR, KNOWN_S, OUT, SOFTER, SURROUNDED_BLOCKS, OwnLevel
from assistant.talk.turn_end import Sign, TurnDetector

USER, MURMUR, CROWD, QUIET = 1e-2, 1e-3, 2e-4, 1e-7
BLOCK = 512


def known(between: float) -> OwnLevel:
    own = OwnLevel()
    own.spoke(USER, 0.0)
    for _ in range(40):
        own.between(between)
    return own


def begins(own: OwnLevel, power: float, now_s: float = 1.0) -> bool:
    for _ in range(3):
        own.between(power)
    return not own.far(now_s)


def test_among_others_only_who_is_about_as_loud_as_the_user_begins():
    assert begins(known(CROWD), USER) and begins(known(CROWD), 1.1 * FAR * USER)
    assert not begins(known(CROWD), 0.9 * FAR * USER)


def test_who_is_alone_begins_however_softly():
    assert begins(known(QUIET), 2 * ALONE * QUIET)


def test_before_the_first_turn_and_long_after_the_last_only_who_hardly_stands_out_is_refused():
    for own, now_s in ((OwnLevel(), 0.0), (known(CROWD), KNOWN_S + 1)):
        for _ in range(40):
            own.between(CROWD)
        assert not begins(own, 0.9 * OUT * CROWD, now_s) and begins(own, 1.1 * OUT * CROWD, now_s)
    assert not begins(known(CROWD), MURMUR, KNOWN_S)


def test_of_a_voice_from_the_first_moment_on_nothing_is_known():
    own = OwnLevel()
    assert not own.far(0.0)
    for _ in range(SURROUNDED_BLOCKS - 1):
        own.between(USER)
    assert not own.far(0.0)


def test_a_soft_turn_moves_what_is_known_a_little_and_a_loud_one_at_once():
    def refused(own: OwnLevel) -> float:
        powers = (USER * 10 ** (-0.01 * step) for step in range(400))
        return next(power for power in powers if not begins(deepcopy(own), power))

    own = known(CROWD)
    before = refused(own)
    own.spoke(MURMUR, 0.0)
    assert refused(own) == pytest.approx(SOFTER * before, rel=0.03)
    own.spoke(USER, 0.0)
    assert refused(own) == before


def talk(detection, powers):
    """Signs of blocks of speech and of none, a turn learnt from at its end as if it had had words; block by block."""
    turns, told = TurnDetector(detection, 16_000), []
    for at, (probability, power) in enumerate(powers):
        if (sign := turns.step(probability, BLOCK, power)) is not None:
            told.append((sign, at, turns.start_sample // BLOCK))
        if sign is Sign.END:
            turns.was_user(turns.power)
            turns.forget_turn()
    return told


REQUEST = [(0.9, USER)] * 30
NEARBY = [(0.05, CROWD)] * 60
NEARER = [(0.9, MURMUR)] * 20


def onsets(detection, powers):
    return [(at, start) for sign, at, start in talk(detection, powers) if sign is Sign.ONSET]


def test_a_murmur_behind_the_users_turns_begins_none_and_before_them_it_does():
    heard = [*NEARBY, *NEARER, *NEARBY, *REQUEST, *NEARBY, *NEARER, *NEARBY, *REQUEST, *NEARBY]
    first, second, third = (60, 140, 310)
    assert [start for _, start in onsets(SemanticVad(), heard)] == [first, second, third]
    assert len(onsets(ServerVad(), heard)) == 4, "the protocol's own detection stays as it is"


def test_a_soft_beginning_is_held_back_and_not_cut_off():
    soft = [(0.9, MURMUR)] * 5
    ((_, start),) = onsets(SemanticVad(), [*NEARBY, *REQUEST, *NEARBY, *soft, *REQUEST])[1:]
    assert start == 150


def test_who_is_as_loud_as_the_others_begins_no_turn_even_the_first():
    assert not onsets(SemanticVad(), [*NEARBY, *[(0.9, 2 * CROWD)] * 20, *NEARBY])
    assert onsets(ServerVad(), [*NEARBY, *[(0.9, 2 * CROWD)] * 20, *NEARBY])


@pytest.mark.parametrize("late", [0, 3])
def test_the_user_is_never_the_surroundings_of_a_client_that_sends_nothing_else(late):
    turn = [*[(0.1, USER)] * late, *REQUEST, *[(0.0, 0.0)] * 40]
    turns, began = TurnDetector(SemanticVad(), 16_000), 0
    for probability, power in turn * 20:
        turns.quick = probability == 0.0  # a reply fills the rest
        if (sign := turns.step(probability, BLOCK, power)) is Sign.ONSET:
            began += 1
        elif sign is Sign.END:
            turns.was_user(turns.power)
            turns.forget_turn()
    assert began == 20


def test_over_a_reply_everybody_is_judged():
    turns = TurnDetector(SemanticVad(), 16_000)
    turns.was_user(USER)
    for probability, power in NEARBY:
        turns.step(probability, BLOCK, power)
    turns.quick = True
    assert turns.step(0.9, BLOCK, CROWD) is Sign.ONSET


def test_the_power_of_a_turn_is_that_of_what_is_loud_in_it():
    turns = TurnDetector(SemanticVad(), 16_000)
    for probability, power in [*NEARBY, *REQUEST, *[(0.9, CROWD)] * 30]:
        turns.step(probability, BLOCK, power)
    assert turns.power == pytest.approx(USER, rel=0.2)
