"""A transducer with weights made up: what a pause costs, what a folder may lack, how it writes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from assistant.asr import open_asr
from assistant.asr.graph_facts import graph_facts
from assistant.asr.paced import Paced
from assistant.asr.transducer import AGAIN_S, Transducer, TransducerFollower, _graph, _tokens, load_transducer
from assistant.base.errors import SettingError
from assistant.contracts import HeardWord, Transcript
from assistant.events import Pcm

RATE = 16_000
Transducers = Callable[..., Transducer]
Write = Callable[..., Path]


def heard(model: Transducer, sound: Pcm, pauses_s: tuple[float, ...] = (), every_s: float = 0.1) -> Transcript:
    """Sound as it comes, the words asked for all the while, with a last pass at each of these times."""
    transcriber = Paced(TransducerFollower(model), clock=lambda: 0.0)
    step = int(every_s * RATE)
    pauses = {round(pause * RATE) // step for pause in pauses_s}
    for number, start in enumerate(range(0, sound.size, step), 1):
        transcriber.push(sound[start : start + step])
        before = transcriber.partial()
        if number in pauses:
            assert transcriber.pause().stable.startswith(before.stable)
    return transcriber.final()


@pytest.mark.parametrize("terms", [False, True], ids=["greedy", "beam"])
@pytest.mark.parametrize("pauses_s", [(1.0,), (0.1, 2.3, 2.4, 4.9), (5.0,)], ids=str)
def test_who_goes_on_is_heard_as_without_the_pause(
    transducers: Transducers, two_cities: Pcm, pauses_s: tuple[float, ...], terms: bool
) -> None:
    model, sound = transducers(terms=terms), two_cities[: 5 * RATE]
    assert heard(model, sound, pauses_s) == heard(model, sound)


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("sherpa-onnx-streaming-zipformer-en-2023-06-26", ("en",)),
        ("icefall_en.int8", ("en",)),
        ("sherpa-onnx-streaming-zipformer-bilingual-zh-en-2023-02-20", ()),
        ("sherpa-onnx-streaming-zipformer-ar_en_id_ja_ru_th_vi_zh-2025-02-10", ()),
        ("sherpa-onnx-streaming-zipformer-fr-2023-04-14", ()),
        ("frozen", ()),
    ],
)
def test_a_folder_for_english_alone_says_so(write_transducer: Write, name: str, languages: tuple[str, ...]) -> None:
    folder = write_transducer()
    assert load_transducer(folder.rename(folder.with_name(name))).facts.languages == languages


def test_a_long_piece_closes_at_a_pause_and_no_word_is_lost(transducers: Transducers, two_cities: Pcm) -> None:
    """Each half alone, one after the other; times go on."""
    model, cut_s = transducers(), AGAIN_S + 2
    first, second = two_cities[: int(cut_s * RATE)], two_cities[int(cut_s * RATE) : int((cut_s + 4) * RATE)]
    both = heard(model, np.concatenate([first, second]), (cut_s,))
    one, other = heard(model, first), heard(model, second)
    assert both.text == f"{one.text} {other.text}"
    moved = [start + cut_s * 1000 for word in other.words if (start := word.start_ms) is not None]
    assert [word.start_ms for word in both.words[len(one.words) :]] == pytest.approx(moved)


def test_what_is_heard_again_is_bounded(transducers: Transducers, two_cities: Pcm) -> None:
    follower = TransducerFollower(transducers())
    for start in range(0, 20 * RATE, RATE):
        follower.hear(two_cities[start : start + RATE])
        follower.read(False)
        assert sum(part.size for part in follower._again) <= AGAIN_S * RATE


def test_the_last_word_in_between_may_grow_and_is_not_stable(transducers: Transducers, two_cities: Pcm) -> None:
    transcriber = Paced(TransducerFollower(transducers()), clock=lambda: 0.0)
    for start in range(0, 4 * RATE, RATE // 4):
        transcriber.push(two_cities[start : start + RATE // 4])
        partial = transcriber.partial()
        assert len(partial.tentative.split()) == 1
    words = transcriber.final().text.split()
    assert partial.stable.split() == words[: len(partial.stable.split())]


def test_words_of_capitals_are_written_small(transducers: Transducers, two_cities: Pcm) -> None:
    large, small = transducers(large=True), transducers()
    assert large.lower and not large.facts.cased and not small.lower
    assert heard(large, two_cities[: 3 * RATE]) == heard(small, two_cities[: 3 * RATE])


def test_times_are_in_order_and_within_the_sound(transducers: Transducers, two_cities: Pcm) -> None:
    final = heard(transducers(), two_cities[: 4 * RATE + 77], (2.0,))
    times = [time for word in final.words for time in (word.start_ms, word.end_ms)]
    assert times == sorted(times, key=lambda time: time or 0.0)
    assert times[-1] is not None and times[-1] <= (4 * RATE + 77) * 1000 / RATE
    assert final.confidence is not None and 0.0 < final.confidence < 1.0


@pytest.mark.parametrize("large", [False, True])
def test_expected_words_are_likelier(transducers: Transducers, two_cities: Pcm, large: bool) -> None:
    model = transducers(terms=True, large=large)

    def often(*terms: str) -> int:
        transcriber = Paced(TransducerFollower(model))
        transcriber.expect(terms)
        transcriber.push(two_cities[: 8 * RATE])
        return transcriber.final().text.split().count("worst")

    assert often("Worst", "a/b", ":2", "#1", "@x", "日本") > often()


class Result:
    def __init__(self, *tokens: str) -> None:
        self.tokens = tokens
        self.timestamps = [0.04 * number for number in range(len(tokens))]
        self.ys_probs: list[float] = []


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ((" it", " is", "n't"), ["it", "isn't"]),
        ((" so", " ,", " then", "."), ["so,", "then."]),
        ((" caf", "<0xC3>", "<0xA9>", " x"), ["café", "x"]),
        ((" ,",), []),
        (("你", "好"), ["你好"]),
        ((), []),
    ],
)
def test_tokens_become_words(transducers: Transducers, tokens: tuple[str, ...], words: list[str]) -> None:
    class Recogniser:
        def get_result_all(self, stream: object) -> Result:
            return Result(*tokens)

    shared = transducers()
    model = Transducer(Recogniser(), shared.facts, shared.tail, shared.alphabet, lower=False)
    found = model.words(None)
    assert [word.text for word in found] == words
    assert all(isinstance(word, HeardWord) and word.probability is None for word in found)


def test_all_talks_share_one_recogniser(write_transducer: Write) -> None:
    asr = open_asr(str(write_transducer()))
    one, other = asr.transcriber(), asr.transcriber()
    assert isinstance(one, Paced) and isinstance(other, Paced) and one is not other
    assert one._follower._model is other._follower._model  # type: ignore[attr-defined]
    assert asr.facts.cadence_ms == 100.0 and asr.facts.word_times and not asr.facts.bias


def test_the_facts_of_a_graph_are_read_without_a_runtime(write_transducer: Write) -> None:
    folder = write_transducer()
    assert graph_facts(folder / "encoder.onnx")["model_type"] == "lstm"
    assert graph_facts(folder / "decoder.onnx") == {"vocab_size": "26", "context_size": "2"}
    data = (folder / "decoder.onnx").read_bytes()
    cut = folder / "cut.onnx"
    for length in range(1, len(data), 97):
        cut.write_bytes(data[:length])
        try:
            assert graph_facts(cut).keys() <= {"vocab_size", "context_size"}
        except SettingError as error:
            assert "download it again" in str(error)


def test_eight_bits_are_preferred(tmp_path: Path) -> None:
    for name in ("encoder-epoch-99.onnx", "encoder-epoch-99.int8.onnx", "decoder.onnx"):
        (tmp_path / name).touch()
    assert _graph(tmp_path, "encoder").name == "encoder-epoch-99.int8.onnx"
    assert _graph(tmp_path, "decoder").name == "decoder.onnx"


def test_tokens_are_read_by_line(tmp_path: Path) -> None:
    (tmp_path / "tokens.txt").write_text("<blk> 0\n▁a 1\r\n 2\n\u3000 3\n\u2028 4\n\n", encoding="utf-8")
    assert _tokens(tmp_path) == {0: "<blk>", 1: "▁a", 2: " ", 3: "\u3000", 4: "\u2028"}
    (tmp_path / "tokens.txt").write_text("a b 1\n", encoding="utf-8")
    with pytest.raises(SettingError, match="is not a token and its number"):
        _tokens(tmp_path)


def damage(folder: Path, how: str) -> None:
    encoder, tokens = folder / "encoder.onnx", folder / "tokens.txt"
    match how:
        case "no decoder":
            (folder / "decoder.onnx").unlink()
        case "no tokens":
            tokens.unlink()
        case "few tokens":
            tokens.write_text("".join(tokens.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
        case "no graph":
            encoder.write_bytes(b"no graph")
        case "half a graph":
            encoder.write_bytes(encoder.read_bytes()[:2000])
        case "another kind":
            encoder.write_bytes(encoder.read_bytes().replace(b"lstm", b"mtsl"))
        case "a fact lost":
            encoder.write_bytes(encoder.read_bytes().replace(b"decode_chunk_len", b"decode_chunk_net"))
        case "odd pieces":
            (folder / "bpe.vocab").write_text("▁the 0\nof\n", "utf-8")
        case "a wrong network":
            encoder.write_bytes(encoder.read_bytes().replace(b"Tanh", b"Hnat"))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("no decoder", r"decoder\*.onnx is missing; it must contain tokens.txt, encoder"),
        ("no tokens", "tokens.txt is missing"),
        ("few tokens", "has 25 tokens, its model 26"),
        ("no graph", "is not a valid ONNX file"),
        ("half a graph", "is not a valid ONNX file"),
        ("another kind", r"say nothing of .*window_size.*\(kind: mtsl\)"),
        ("a fact lost", "say nothing of decode_chunk_len"),
        ("odd pieces", "b'of' is not a piece and its score"),
        ("a wrong network", "cannot be loaded as a transducer"),
    ],
)
def test_a_damaged_folder_is_told_and_ends_no_process(write_transducer: Write, how: str, told: str) -> None:
    folder = write_transducer()
    damage(folder, how)
    with pytest.raises(SettingError, match=told):
        load_transducer(folder)
