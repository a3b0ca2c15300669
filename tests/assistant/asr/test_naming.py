"""Asked for a name, Moonshine tells how likely a sound begins with it."""

import numpy as np
import pytest

from assistant.asr.moonshine import moonshine
from assistant.asr.naming import LIKELY, Naming
from assistant.asr.network import BEGIN, Network
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import CalledName


@pytest.fixture(scope="module")
def beginning(two_cities: Pcm) -> Pcm:
    """ "It was the best of times", read by a person."""
    return two_cities[: int(2.2 * HEARING_RATE)]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("Ada", "It was"), "It was"),
        (("was the", "Ben"), "was the"),
        (("best of", "Ada", "Ben", "Hey Jarvis", "Alexa", "Okay Nabu"), None),
        (("…", ""), None),
        ((), None),
    ],
)
def test_a_name_stands_first_or_behind_one_word(network: Network, beginning: Pcm, names, found) -> None:
    called = moonshine(network).called(beginning, names)
    assert called is None if found is None else called is not None and called.name == found
    if found is not None:
        assert "best of" in called.rest and found not in called.rest


def test_a_name_is_as_likely_as_if_it_had_been_dictated(network: Network, beginning: Pcm) -> None:
    hearing = network._hear(beginning, None)
    named = Naming(hearing.step, network.tokens).likeliest(("was the", "Ada"))
    assert named is not None and named.score >= LIKELY
    dictated = hearing.greedy(named.tokens, len(named.tokens))
    assert named.score == pytest.approx(sum(dictated.scores[: len(named.tokens)]), abs=0.05)  # eight-bit rounding


def test_one_token_alone_needs_more(network: Network, beginning: Pcm) -> None:
    """ "It" is the first word, and "was" stands behind it."""
    naming = Naming(network._hear(beginning, None).step, network.tokens)
    it = naming.likeliest(("It",))
    assert it is not None and len(it.tokens) == 1
    assert naming.likeliest(("It",), alone=it.score + 0.01) is None
    assert naming.likeliest(("was",), alone=0.1) is not None


def test_nothing_is_likelier_than_what_is_asked_at_least(network: Network, beginning: Pcm) -> None:
    steps = []

    def counted(ids, past):
        steps.append(ids)
        return network._hear(beginning, None).step(ids, past)

    assert Naming(counted, network.tokens).likeliest(("Ada", "Ben"), least=0.1, alone=0.1) is None
    assert steps == [[BEGIN]]  # nothing can be that likely, so nothing more is read


def test_a_called_name_is_found_in_a_robots_voice(network: Network, spoken) -> None:
    transcriber = moonshine(network)
    transcriber.push(np.ones(8000, np.float32) * 0.01)
    called = transcriber.called(spoken("Alexa, what time is it?"), ("Ada", "Alexa"))
    assert called == CalledName("Alexa", "what time is it?")
    assert transcriber.confirms(spoken("Hey Jarvis"), "Hey Jarvis")
    assert not transcriber.confirms(spoken("when the turn is over"), "Hey Jarvis")
