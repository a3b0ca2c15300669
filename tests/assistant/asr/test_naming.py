"""Asked for a name, Moonshine reports how likely a sound begins with it."""

from collections.abc import Sequence

import numpy as np
import pytest

from assistant.asr.moonshine import MoonshineFollower, moonshine
from assistant.asr.naming import LIKELY, Named, Naming
from assistant.asr.network import BEGIN, Decoded, Network
from assistant.asr.paced import Paced
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import AsrFacts, CalledName, Partial, Transcript


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


@pytest.mark.parametrize(("behind", "found"), [(" are", True), (",", True), ("chmark", False)])
def test_the_beginning_of_a_longer_word_is_no_name(network: Network, behind: str, found: bool) -> None:
    """ "Benchmarks" begins with the very token of "Ben"."""
    tokens = network.tokens
    ben, bench = tokens.of("Ben"), tokens.of("Benchmarks")
    assert bench[:1] == ben
    after = {",": tokens.of("Ben,")[1], " are": tokens.of("are")[0], "chmark": bench[1]}[behind]

    def step(ids: Sequence[int], past: object) -> tuple[np.ndarray, dict]:
        rows = np.full((len(ids), tokens.goes_on().size), -20.0, np.float32)
        for row, before in zip(rows, ids, strict=True):
            row[ben[0] if before == BEGIN else after] = 0.0
        return rows, {}

    assert (Naming(step, tokens).likeliest(("Ben",)) is not None) is found


def test_nothing_is_likelier_than_what_is_asked_at_least(network: Network, beginning: Pcm) -> None:
    steps = []

    def counted(ids, past):
        steps.append(ids)
        return network._hear(beginning, None).step(ids, past)

    assert Naming(counted, network.tokens).likeliest(("Ada", "Ben"), least=0.1, alone=0.1) is None
    assert steps == [[BEGIN]]  # nothing can be that likely, so nothing more is read


def test_the_search_ends_where_nothing_likelier_can_follow(network: Network, beginning: Pcm) -> None:
    """It finds what it finds for each name alone, and a sure name costs the reading of that name."""
    names, steps = ("best", "Times", "It was", "It"), []
    hearing = network._hear(beginning, None)

    def counted(ids, past):
        steps.append(tuple(ids))
        return hearing.step(ids, past)

    found = Naming(counted, network.tokens).likeliest(names, least=-25.0, alone=-25.0)
    together = len(steps)
    alone = [Naming(counted, network.tokens).likeliest((name,), least=-25.0, alone=-25.0) for name in names]
    assert found == max((one for one in alone if one is not None), key=lambda one: one.score)
    assert found is not None and found.score > -1.0 and together <= 8 < (len(steps) - together) / len(names)


def test_a_called_name_is_found_in_a_robots_voice(network: Network, spoken) -> None:
    transcriber = moonshine(network)
    called = transcriber.called(spoken("Alexa, what time is it?"), ("Ada", "Alexa"))
    assert called == CalledName("Alexa", "what time is it?")
    assert transcriber.confirms(spoken("Hey Jarvis"), "Hey Jarvis")
    assert not transcriber.confirms(spoken("when the turn is over"), "Hey Jarvis")


class Reader:
    """Ears that look for a name in their text, and write it as "Somebody" unless they expect it."""

    facts = AsrFacts("reader", ("en",), True, 100.0, True, False)

    def __init__(self) -> None:
        self.terms: Sequence[str] = ()

    def hear(self, pcm: Pcm) -> None: ...
    def drop(self) -> None: ...
    def forget(self) -> None: ...

    def read(self, whole: bool) -> Partial:
        return Partial("", f"{self.terms[0] if self.terms else 'Somebody'}, what time is it?")

    def end(self) -> Transcript:
        return Transcript(self.read(True).text)

    def expect(self, terms: Sequence[str]) -> None:
        self.terms = terms


def test_ears_that_look_in_their_text_expect_the_name_there_and_nowhere_else(beginning: Pcm) -> None:
    transcriber = Paced(Reader())
    for _ in range(2):
        assert transcriber.called(beginning, ("Ada", "Ben")) == CalledName("Ada", "What time is it?")
        assert transcriber.confirms(beginning, "Hey Jarvis")
        transcriber.push(beginning)
        assert transcriber.final().text == "Somebody, what time is it?"


def test_a_name_is_left_out_of_an_utterance_and_the_rest_is_what_it_would_have_been(network: Network, two_cities: Pcm):
    """ "It was" stands for the name; what comes behind it is read in the same way."""
    sound = two_cities[: int(5 * HEARING_RATE)]
    plain, named = moonshine(network), moonshine(network)
    assert named.called(sound, ("It was",)) and named.leave_out("It was")
    for start in range(0, sound.size, 8000):
        for transcriber in (plain, named):
            transcriber.push(sound[start : start + 8000])
        whole, rest = plain.partial(now=True), named.partial(now=True)
        assert "It was" not in rest.text[:6] and rest.text.startswith(rest.stable), (whole, rest)
    whole, rest = plain.final(), named.final()
    assert whole.text.startswith("It was the best of") and rest.text == "The" + whole.text[len("It was the") :]
    assert [word.text for word in rest.words[1:]] == [word.text for word in whole.words[3:]]
    named.push(sound)
    assert named.final().text.startswith("It was the best")  # the next utterance has no name


@pytest.mark.parametrize(
    ("spelt", "rest", "chance", "speech"),
    [(1e-3, "stop", 0.9, True), (0.9, "You", 0.9, False), (0.9, "you", 0.9, False), (0.9, "stop", 0.1, False)],
)
def test_what_stands_behind_a_name_is_believed_as_if_it_stood_alone(
    network: Network, spelt: float, rest: str, chance: float, speech: bool
) -> None:
    """A name that is spelt oddly makes it no less likely, and what noise is written as no more sensible."""
    name, behind = network.tokens.of("Okay Nabu"), network.tokens.of(rest)

    class Written:
        tokens = network.tokens
        written = Decoded((*name, *behind), (spelt,) * len(name) + (chance,) * len(behind))

        def read(self, *asked: object) -> object:
            return self

        def named(self, sound: Pcm, names: Sequence[str]) -> tuple[Named, str]:
            return Named(names[0], tuple(name), -1.0), ""

    follower = MoonshineFollower(Written())  # type: ignore[arg-type]  # as much of a network as is asked
    sound = np.ones(HEARING_RATE, np.float32)
    assert not follower.leave_out("Okay Nabu")  # nobody has called it yet
    assert follower.named(sound, ("Okay Nabu",)) and not follower.leave_out("Hey Jarvis")
    assert follower.leave_out("Okay Nabu")
    follower.hear(sound)
    follower.read(whole=True)
    assert follower.end().speech is speech


@pytest.mark.parametrize(("name", "seconds"), [("It was", 1.6), ("It was the best", 2.0)])
def test_a_name_alone_leaves_no_words(network: Network, beginning: Pcm, name: str, seconds: float) -> None:
    transcriber, sound = moonshine(network), beginning[: int(seconds * HEARING_RATE)]
    transcriber.push(sound)
    assert transcriber.final().text.rstrip(".") == name
    assert transcriber.called(sound, (name,)) and transcriber.leave_out(name)
    transcriber.push(sound)
    assert not transcriber.final().speech
