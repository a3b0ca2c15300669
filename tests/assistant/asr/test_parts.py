"""The parts of the streaming ears: which words are stable, where speech is cut, what noise is, what a draft may do."""

from pathlib import Path

import numpy as np
import pytest

import llm_engine
from assistant.asr.agreement import Agreement, begin_alike
from assistant.asr.cutting import EARLY_S, LONGEST_S, cut_point
from assistant.asr.grown import splice
from assistant.asr.level import gain
from assistant.asr.likely import Likely
from assistant.asr.moonshine import FACTS, MoonshineFollower, moonshine
from assistant.asr.network import BEHIND_S, RIVALS, UNLIKELY, UNSURE, Decoded, Network, ReadSound
from assistant.asr.paced import LONGEST_CADENCE_MS, SHARE, Paced
from assistant.asr.sense import repeats, sensible
from assistant.contracts import Partial, Transcript
from assistant.events import Pcm
from assistant.llm.small.rescoring import RequestChances

RATE = 16_000
REQUESTS = RequestChances(Path(llm_engine.__file__).parent / "tiny")


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        ("it was the best", "it was the best", 4),
        ("it was the best.", "it was the best of", 4),
        ("it was. the best", "it was the best", 2),
        ("it was", "It was", 0),
        ("there", "therefore", 0),
        ("", "it", 0),
    ],
)
def test_words_both_begin_with(a: str, b: str, count: int) -> None:
    assert begin_alike(a.split(), b.split()) == begin_alike(b.split(), a.split()) == count


def test_a_word_is_stable_when_all_passes_of_four_tenths_of_a_second_wrote_it() -> None:
    agreement = Agreement()
    assert agreement.add(1000, ["set"]) == 0
    assert agreement.add(1250, ["set", "a", "time"]) == 0
    assert agreement.add(1500, ["set", "a", "timer"]) == 1 and agreement.since_ms == 1000
    assert agreement.add(1750, ["set", "a", "timer."]) == 2 and agreement.since_ms == 1250
    assert agreement.add(2000, ["set", "a", "timer", "for"]) == 3 and agreement.since_ms == 1500


def test_one_pass_alone_makes_nothing_stable() -> None:
    assert Agreement().add(5000, ["set", "a", "timer"]) == 0


def noisy(seconds: float, level: float, seed: int = 1) -> Pcm:
    return np.random.default_rng(seed).normal(0, level, int(seconds * RATE)).astype(np.float32)


def test_speech_is_cut_in_its_first_pause_after_five_seconds() -> None:
    sound = noisy(12, 0.1) * np.abs(np.sin(np.arange(12 * RATE) / RATE * 9)).astype(np.float32)  # syllables
    for pause in (2.0, 6.2, 7.0):
        sound[int(pause * RATE) : int((pause + 0.3) * RATE)] *= 0.01
    cut = cut_point(sound, 0.0)
    assert cut is not None and 6.2 < cut / RATE < 6.5
    assert cut_point(sound[: int(6.3 * RATE)], 0.0) is None
    settled = cut_point(sound, 6.6)
    assert settled is not None and 7.0 < settled / RATE < 7.3


@pytest.mark.parametrize("settled_s", [0.0, 8.0, 9.5])
def test_speech_without_a_pause_is_cut_before_it_gets_long(settled_s: float) -> None:
    sound = noisy(30, 0.1) * np.abs(np.sin(np.arange(30 * RATE) / RATE * 9)).astype(np.float32)
    cut = cut_point(sound, settled_s)
    assert cut is not None and max(EARLY_S, settled_s) <= cut / RATE <= max(LONGEST_S, settled_s + 0.3)
    assert cut_point(sound[: int(EARLY_S * RATE)], settled_s) is None


@pytest.mark.parametrize(
    ("level", "steps"), [(0.5, 1), (0.1, 1), (0.06, 2), (0.025, 4), (0.005, 16), (1e-4, 32), (0.0, 1)]
)
def test_a_quiet_voice_is_made_louder_by_whole_steps(level: float, steps: float) -> None:
    sound = noisy(2, level)
    assert gain(sound) == steps
    with_silence = np.concatenate([np.zeros(RATE, np.float32), sound, noisy(1, level / 1000)])
    assert gain(with_silence) == steps, "pauses do not count"


def test_every_pass_over_a_sound_that_grows_is_as_loud() -> None:
    sound = noisy(4, 0.02) * np.abs(np.sin(np.arange(4 * RATE) / RATE * 9)).astype(np.float32)  # syllables
    assert len({gain(sound[:end]) for end in range(RATE // 2, sound.size, RATE // 4)}) == 1


@pytest.mark.parametrize("samples", [0, 1, 63, 319])
def test_sound_of_less_than_a_frame_has_a_level_too(samples: int) -> None:
    assert gain(np.full(samples, 0.01, np.float32)) in (1.0, 8.0)


@pytest.mark.parametrize("text", ["", "♪♪♪♪", "You", "Thank you for watching!", "...", "- -"])
def test_what_noise_is_written_as_makes_no_sense(text: str) -> None:
    assert not sensible(text, [1, 2, 3], 0.9, ("en",))


@pytest.mark.parametrize("text", ["Yes.", "you?", "You.", "Thank you.", "Stop!", "5", "No, no, no."])
def test_short_answers_make_sense(text: str) -> None:
    assert sensible(text, list(range(9)), 0.5, ("en",))


def test_what_the_network_does_not_believe_makes_no_sense() -> None:
    assert not sensible("I'm going to take a picture of the picture.", list(range(12)), 0.17, ("en",))


@pytest.mark.parametrize(("period", "most"), [(1, 6), (2, 6), (5, 3), (12, 3)])
def test_a_loop_is_seen(period: int, most: int) -> None:
    run = list(range(100, 100 + period))
    assert repeats([1, 2, *run * (most + 1)])
    assert not repeats([1, 2, *run * most, 3])
    assert repeats([1, 2, *run * most, *run[:-1], 3]) is (period > 2), "a full stop, not a comma"


@pytest.mark.parametrize(
    ("stable", "written", "at"),
    [
        ("it was", "it was the best", 2),
        ("it was", "it was. The best", 2),
        ("it was the", "it is was the best", 4),
        ("it was the", "it the best", 2),
        ("it was the", "a tale of two cities", 3),
        ("", "it was", 0),
    ],
)
def test_a_text_goes_on_after_its_stable_words(stable: str, written: str, at: int) -> None:
    assert splice(stable.split(), written.split()) == at


def test_tokens_and_text_are_one(network: Network, two_cities: Pcm) -> None:
    tokens = network.tokens
    written = network.write(two_cities[: 6 * RATE]).tokens
    text = tokens.text(written)
    assert text.startswith("It was the best of times")
    assert " ".join(word for word, _ in tokens.words(written)) == text
    assert tokens.words(written)[-1][1] == len(written)
    assert tokens.text(written[: tokens.without_marks(written)]) == text.rstrip(".,")
    for word in ("times", "Mirela", "Nürnberg", "日本", "it's"):
        assert tokens.text(tokens.of(word)) == word
    assert tuple(n for word in ("It", "was", "the", "best") for n in tokens.of(word)) == written[:4]


def test_marks_and_digits_are_the_pieces_that_the_network_writes(network: Network, spoken) -> None:
    """Not the single bytes of the same look, which it never writes where there is a piece."""
    written = network.write(spoken("what time is it")).tokens
    assert network.tokens.text(written).endswith("?")
    assert tuple(network.tokens.of(network.tokens.text(written))) == written
    assert min(network.tokens.of("At 8:30, please.")) >= 259 > min(network.tokens.of("☃"))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 3.3, 8.0])
def test_a_draft_changes_nothing(network: Network, two_cities: Pcm, seconds: float) -> None:
    sound = two_cities[: int(seconds * RATE)]
    plain = network.write(sound)
    other = network.write(two_cities[20 * RATE : 23 * RATE]).tokens
    for draft in (plain.tokens, plain.tokens[:3], (*plain.tokens, 887), other, plain.tokens[:2] + other):
        drafted = network.write(sound, draft)
        assert drafted.tokens == plain.tokens
        means = [np.mean(each.probabilities) for each in (drafted, plain)]
        assert abs(means[0] - means[1]) < 0.1  # its eight bits are scaled over all tokens of a step


def test_what_is_held_is_kept(network: Network, two_cities: Pcm) -> None:
    held = network.tokens.of("It") + network.tokens.of("wasn't")
    written = network.write(two_cities[: 3 * RATE], (*held, 887), len(held)).tokens
    assert list(written[: len(held)]) == held


def test_silence_comes_behind_and_none_before(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Pcm] = []

    class Encoder:
        def run(self, _: None, fed: dict[str, np.ndarray]) -> list[np.ndarray]:
            read.append(fed["input_values"][0])
            return encoder.run(None, fed)

    encoder = network._encoder
    monkeypatch.setattr(network, "_encoder", Encoder())
    sound = noisy(0.3, 0.1)
    network.write(sound)
    assert np.array_equal(read[0][: sound.size], sound)
    assert read[0].size == sound.size + BEHIND_S * RATE and not read[0][sound.size :].any()


def test_rivals_begin_with_the_greedy_text_and_keep_what_is_held(network: Network, two_cities: Pcm) -> None:
    sound = two_cities[: int(3.3 * RATE)] + noisy(3.3, 0.01)
    plain = network.write(sound)
    rivals = network.read(sound).rivals()
    assert rivals[0].tokens == plain.tokens and len(rivals) > 1
    assert len({one.tokens for one in rivals}) == len(rivals) <= RIVALS + 1
    assert all(one.score >= plain.score - UNLIKELY for one in rivals)
    held = plain.tokens[:2]
    assert all(one.tokens[:2] == held for one in network.read(sound, plain.tokens, 2).rivals(2))


def test_a_rival_is_as_likely_as_if_it_had_been_the_draft(network: Network, two_cities: Pcm) -> None:
    """Decoding shares what was read before the parting, and reads what comes behind it at once: nothing more."""
    sound = two_cities[: int(3.3 * RATE)] + noisy(3.3, 0.01)
    for rival in network.read(sound).rivals()[1:3]:
        alone = network.write(sound, rival.tokens, len(rival.tokens))
        assert alone.tokens == rival.tokens
        assert alone.score == pytest.approx(rival.score, abs=0.5)  # eight bits, scaled by what is read at once


def test_requests_are_likelier_than_what_sounds_like_them() -> None:
    likely = Likely(REQUESTS)
    pairs = (
        ("What is half of eighty?", "What is half of A. D."),
        ("Flip a coin.", "Flipper coin."),
        ("What's 25 x 4?", "What's 25 x for?"),
    )
    for quickly in (False, True):
        assert all(likely.choose(pair, (-0.5, 0.0), quickly) == 0 for pair in pairs)
        strange = ("", "…", "<think>", "¿Qué?", "9" * 400, "\x00")
        assert all(likely.choose(strange, np.eye(6)[at] * 1e6, quickly) == at for at in range(6))


def test_a_rescorer_chooses_only_among_what_it_takes_for_requests() -> None:
    likely = Likely(REQUESTS)
    said, heard = "His voice was soft and grave.", "His voice was soft and brave."
    by_trigram = likely.choose((said, heard), (0.0, 0.0), quickly=True)
    for mean, chosen in ((-3.6, by_trigram), (-3.4, 1 - by_trigram)):  # of the other text, which the model prefers
        chances = [[-50.0] * 8, [-50.0] * 8]
        chances[1 - by_trigram] = [mean] * 8
        likely = Likely(type("Scripted", (), {"chances": lambda self, texts, chances=chances: chances})())
        assert likely.choose((said, heard), (0.0, 0.0)) == chosen


def test_what_is_no_usual_request_is_read_once_more_played_quicker(
    network: Network, two_cities: Pcm, spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, int]] = []
    plain = Network.read

    def reads(self: Network, sound: Pcm, draft=(), held=0, bias=None) -> ReadSound:
        read.append((sound.size, held))
        return plain(self, sound, draft, held, bias)

    monkeypatch.setattr(Network, "read", reads)
    likely = Likely(REQUESTS)
    unsure = two_cities[: int(3.3 * RATE)] + noisy(3.3, 0.02)
    for sound, times in (unsure, 2), (spoken("what time is it"), 1):
        read.clear()
        follower = MoonshineFollower(network, likely)
        follower._write(piece := follower._opened(sound), sound, last=True)
        assert [size for size, _ in read] == pytest.approx([sound.size, sound.size * 11 / 12][:times], abs=2)
    piece = follower._opened(unsure)
    piece.written, piece.held = network.write(unsure), 2
    found = network.read(unsure, piece.written.tokens, 2).rivals(2)
    more = follower._requests(likely, piece, unsure, found)
    assert more and all(tokens[:2] == piece.written.tokens[:2] for tokens in more)
    assert not set(more) & {one.tokens for one in found}


def test_hesitating_makes_no_request_less_likely() -> None:
    likely = Likely(REQUESTS)
    both = ("Set a timer for, um, twenty minutes.", "Set a timer for twenty minutes.")
    assert [likely.choose(both, scores) for scores in ((1e-6, 0.0), (0.0, 1e-6))] == [0, 1]
    assert likely.usual("What is, uh, half of eighty?")
    assert Likely.breaks_off("What is half of? Um.", "What is half of um, 64?")


def test_what_people_ask_is_usual_and_what_sounds_like_it_is_not() -> None:
    likely = Likely(REQUESTS)
    assert all(map(likely.usual, ("What time is it?", "Who are you?", "Tell me a story.")))
    assert not any(map(likely.usual, ("What jays it?", "A count to twenty.", "Can't to twinkie.", "")))


def test_the_beginning_of_what_was_heard_is_no_other_text() -> None:
    heard = "What is half of, and sixty-four?"
    assert Likely.breaks_off("What is half of?", heard) and Likely.breaks_off("", heard)
    assert not any(Likely.breaks_off(text, heard) for text in (heard, "What is half of 64?", "What is half of a lot?"))


def test_likelier_words_do_not_cost_what_was_said_behind_them() -> None:
    greedy, short = Decoded((1, 2, 3), (0.9,) * 3, -2.0), Decoded((1, 2), (0.9,) * 2, -2.1)

    class TwoTexts:
        """Writes one text, and might have stopped before its end."""

        tokens = type("", (), {"text": lambda self, ids: " ".join(["how", "long", "now"][: len(ids)])})()

        written = greedy

        def read(self, *asked: object) -> object:
            return self

        def rivals(self, *asked: object) -> list[Decoded]:
            return [greedy, short]

    likely = Likely(REQUESTS)
    assert likely.choose(("how long", "how long now"), (short.score, greedy.score)) == 0
    follower = MoonshineFollower(TwoTexts(), likely)  # type: ignore[arg-type]  # as much of a network as is asked
    follower._write(follower._piece, noisy(1.0, 0.01), last=True)
    assert follower._piece.written == greedy


@pytest.mark.parametrize(("text", "speech"), [("啊啊啊", False), ("이", False), ("Café", True), ("5", True)])
def test_english_ears_write_other_scripts_for_a_laugh(text: str, speech: bool) -> None:
    class OneText:
        tokens = type("", (), {"text": lambda self, ids: text, "words": lambda self, ids: [(text, 1)] * len(ids)})()
        written = Decoded((1,), (0.9,), -0.1)

        def read(self, *asked: object) -> object:
            return self

    follower = MoonshineFollower(OneText())  # type: ignore[arg-type]  # as much of a network as is asked
    follower.hear(noisy(1.0, 0.01))
    follower.read(whole=True)
    assert follower.end().speech is speech


def test_somebody_else_is_asked_only_where_the_network_was_unsure(network: Network, two_cities: Pcm, spoken) -> None:
    other = tuple(network.tokens.of("It was the pest of rhymes"))
    sure, unsure = spoken("what time is it"), two_cities[: int(3.3 * RATE)] + noisy(3.3, 0.02)
    assert network.write(sure).score > UNSURE > network.write(unsure).score
    for sound, more in (sure, 0), (unsure, 1):
        plain, rivals = network.read(sound).rivals(), network.read(sound).rivals(others=lambda found: [other])
        assert rivals[: len(plain)] == plain and len(rivals) == len(plain) + more
    assert rivals[-1].tokens[: len(other)] == other


def test_what_a_request_may_have_been_is_told_in_words_and_in_digits(spoken) -> None:
    likely = Likely(REQUESTS)
    sound = spoken("set a timer for twelve minutes")
    whole = likely.hears(sound)
    assert whole == ("Set a timer for twelve minutes", "Set a timer for 12 minutes") == likely.hears(sound)
    assert likely.hears(sound, "Set a timer,") == ("for twelve minutes", "for 12 minutes")
    assert likely.hears(sound, " ".join(["so"] * 20)) == likely.hears(np.zeros(RATE // 100, np.float32)) == ()


@pytest.mark.slow
def test_a_voice_from_afar_reads_the_same(network: Network, two_cities: Pcm) -> None:
    near = network.tokens.text(network.write(two_cities[: 6 * RATE]).tokens)
    for factor in (0.3, 0.1, 0.03, 0.01):
        far = np.float32(factor) * two_cities[: 6 * RATE]
        assert network.tokens.text(network.write(far).tokens) == near


class Watched:
    """A network that remembers how much sound each pass got."""

    def __init__(self, network: Network) -> None:
        self.tokens, self._network = network.tokens, network
        self.seconds: list[float] = []

    def read(self, sound: Pcm, *rest: object) -> ReadSound:
        self.seconds.append(sound.size / RATE)
        return self._network.read(sound, *rest)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("words_between", [True, False])
def test_a_minute_costs_a_bounded_amount(network: Network, two_cities: Pcm, words_between: bool) -> None:
    watched = Watched(network)
    transcriber = Paced(MoonshineFollower(watched), clock=lambda: 0.0)  # type: ignore[arg-type]
    minute = np.concatenate([two_cities, two_cities])[: 60 * RATE]
    for start in range(0, minute.size, 8000):
        transcriber.push(minute[start : start + 8000])
        if words_between and start % 24_000 == 0:
            transcriber.partial()
    before = sum(watched.seconds)
    text = transcriber.final().text
    assert max(watched.seconds) <= LONGEST_S + 1.0
    assert sum(watched.seconds) - before <= (20 if words_between else 75)
    assert text.startswith("It was the best of times") and "superlative degree" in text


def test_noise_is_no_speech(network: Network) -> None:
    time = np.arange(3 * RATE) / RATE
    hum = sum(np.sin(2 * np.pi * f * time) / n for n, f in enumerate((50, 150, 250), 1))
    for level in (1e-3, 1e-2, 1e-1):
        for sound in (noisy(3, level), level * hum):
            transcriber = moonshine(network)
            transcriber.push(np.asarray(sound, np.float32))
            assert not transcriber.final().speech


class Dear:
    """A follower of nothing, every pass of which takes some time."""

    def __init__(self, now: list[float], cost_s: float) -> None:

        self.facts, self._now, self._cost = FACTS, now, cost_s
        self.passes = 0

    def hear(self, pcm: Pcm) -> None: ...
    def drop(self) -> None: ...
    def forget(self) -> None: ...
    def expect(self, terms: object) -> None: ...

    def read(self, whole: bool) -> Partial:
        self._now[0] += self._cost
        self.passes += 1
        return Partial()

    def end(self) -> Transcript:
        return Transcript("")


@pytest.mark.parametrize(("cost_s", "cadence_ms"), [(0.01, 250.0), (0.1, 400.0), (3.0, LONGEST_CADENCE_MS)])
def test_dear_passes_come_less_often(cost_s: float, cadence_ms: float) -> None:
    now = [0.0]
    follower = Dear(now, cost_s)
    transcriber = Paced(follower, clock=lambda: now[0])
    for _ in range(300):
        transcriber.push(np.zeros(512, np.float32))
        transcriber.partial()
    assert transcriber.cadence_ms == pytest.approx(cadence_ms)
    assert follower.passes == pytest.approx(300 * 32 / cadence_ms, abs=3)
    assert cost_s > LONGEST_CADENCE_MS / 1000 * SHARE or follower.passes * cost_s <= SHARE * 9.6 + cost_s
