"""The speech recipes in small: recorded losses of the first steps, resuming without a seam, what a sequence holds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import tts_engine
from recipes import speech_export, speech_grow
from recipes.adversary import Adversary
from recipes.codec import CodecPlan, CodecRun, load_codec
from recipes.codec_decoder import DecoderRun
from recipes.lexicon import corrected
from recipes.spectral import PhaseAdvance
from recipes.speech_data import Builder, Utterance, align, encode_shards, load_utterances, split_at_pause
from recipes.speech_export import export, restore
from recipes.speech_grow import grow
from recipes.speech_score import as_written, rate
from recipes.speech_training import VoicePlan, VoiceRun, published_config
from recipes.teacher import LEAD_S, SAMPLE_RATE, TAIL_S, VOICES, Heart, save_shard, sounding, speak, symbol
from tts_engine.config import parse_config
from tts_engine.istft_codec import CodecShape
from tts_engine.phones import PHONES, SPECIAL_TOKENS, PhoneEncoder

pytestmark = pytest.mark.slow

SHIPPED = Path(tts_engine.__file__).parent / "tiny"
IDS = {phone: len(SPECIAL_TOKENS) + i for i, phone in enumerate(PHONES)}
SHAPE = CodecShape(codebooks=2, codebook_size=8, code_dim=4, latent=8, width=8, encoder_blocks=1, decoder_blocks=1)
CODEC_PLAN = CodecPlan(steps=8, batch=2, samples=9_600, warm=0.5)


CODEC_LOSSES = [4.49051, 4.71251, 4.64345, 4.65759, 4.59119, 4.51452]
VOICE_LOSSES = [4.88806, 4.76901, 4.65277, 4.49577]


def clips():
    rng = np.random.default_rng(5)
    t = np.arange(24_000) / 24_000
    waves = [np.sin(2 * np.pi * f * t) * rng.uniform(0.1, 0.4) + rng.normal(0, 0.01, len(t)) for f in (150, 220, 440)]
    return [(w * 32767).astype(np.int16) for w in waves]


def config():
    raw = published_config()
    raw["audio_encoder_config"] |= {"num_codebooks": 2, "vocab_size": 18, "out_dim": 32}
    raw["codebook_temperatures"] = [1.0, 1.0]
    raw["text_config"] |= {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "intermediate_size": 48,
    }
    return parse_config(raw)


def utterances(count=30):
    rng = np.random.default_rng(7)
    made = []
    for i in range(count):
        names = ["sil", "s", "eh1", "v", ",", "ax", "n", "#", "t", "uw1", "."]
        lengths = rng.integers(2, 5, len(names))
        cursor = np.repeat(np.arange(len(names)), lengths)
        codes = rng.integers(0, 16, (2, len(cursor)))
        codes[0] = np.array([IDS[n] for n in names])[cursor] % 16
        made.append(Utterance(["ada", "ben"][i % 2], np.array([IDS[n] for n in names]), codes, cursor))
    return made


def voice_run():
    return VoiceRun(VoicePlan(steps=8, batch=4, held_out=4), config(), utterances())


def test_first_losses_of_the_codec_are_the_recorded_ones():
    run = CodecRun(CODEC_PLAN, SHAPE, clips())
    losses = [run.step() for _ in range(6)]
    assert run.trainer.on
    assert losses == pytest.approx(CODEC_LOSSES, rel=2e-4)


def test_first_losses_of_the_voice_are_the_recorded_ones():
    run = VoiceRun(VoicePlan(steps=400, batch=4, held_out=4), config(), utterances())
    run.step_index = 100  # behind the warm-up, where every part of a step tells
    losses = [float(codes.mean()) + advance for codes, advance in (run.step() for _ in range(4))]
    assert losses == pytest.approx(VOICE_LOSSES, rel=2e-4)


def test_half_precision_learns_alike():
    """The losses of bfloat16 products are the recorded ones but for rounding; weights and averages stay float32."""
    run = VoiceRun(VoicePlan(steps=400, batch=4, held_out=4, half=True), config(), utterances())
    run.step_index = 100
    losses = [float(codes.mean()) + advance for codes, advance in (run.step() for _ in range(4))]
    assert losses == pytest.approx(VOICE_LOSSES, rel=5e-3)
    assert losses != pytest.approx(VOICE_LOSSES, rel=1e-5)
    assert {t.dtype for t in (*run.tensors, *run.averaged)} == {torch.float32}


def test_a_sentence_that_is_held_out_is_not_learnt_in_other_codes_either():
    known = utterances()
    late = [replace(u, codes=(u.codes + 1) % 16) for u in known]
    run = VoiceRun(VoicePlan(batch=4, held_out=4), config(), known, late)
    learnt = [u for voice in run.by_voice.values() for u in voice]
    kept = [i for i, u in enumerate(known) if not any(u is held for held in run.test)]
    assert len(run.test) > 3
    assert {id(u) for u in learnt} == {id(codes[i]) for codes in (known, late) for i in kept}


def test_every_sentence_is_encoded_twice_the_second_time_from_half_a_frame_on(tmp_path):
    CodecRun(CODEC_PLAN, SHAPE, clips()).save(tmp_path / "codec.pt")
    facts = [{"voice": "ada", "phones": ["sil", "s", "."], "ends": [0.065, 0.5, 1.0]} for _ in clips()]
    save_shard(tmp_path / "shard0000.npz", clips(), facts)
    encode_shards(tmp_path)
    codec, half = load_codec(tmp_path / "codec.pt"), SHAPE.hop // 2
    for late, begin, silent in ((False, 0, 2), (True, half, 1)):  # centres at 20 and 60 ms; the phone ends at 65 or 45
        found = load_utterances(tmp_path, late)
        waves = [torch.from_numpy(c[begin:].astype(np.float32) / 32767)[None] for c in clips()]
        assert all(np.array_equal(u.codes, codec.to_codes(w)[0]) for u, w in zip(found, waves, strict=True))
        assert all(len(u.cursor) == u.codes.shape[1] for u in found)
        assert (found[0].cursor == 0).sum() == silent


def test_the_codec_run_resumes_without_a_seam(tmp_path):
    whole = CodecRun(CODEC_PLAN, SHAPE, clips())
    expected = [whole.step() for _ in range(6)]
    first = CodecRun(CODEC_PLAN, SHAPE, clips())
    got = [first.step() for _ in range(3)]
    first.save(tmp_path / "codec.pt")
    second = CodecRun(CODEC_PLAN, SHAPE, clips())
    second.load(tmp_path / "codec.pt")
    assert got + [second.step() for _ in range(3)] == expected


def test_the_voice_run_resumes_without_a_seam(tmp_path):
    whole = voice_run()
    expected = [whole.step()[1] for _ in range(4)]
    first = voice_run()
    got = [first.step()[1] for _ in range(2)]
    first.save(tmp_path / "voice.pt")
    second = voice_run()
    second.load(tmp_path / "voice.pt")
    assert got + [second.step()[1] for _ in range(2)] == expected


def test_what_is_restored_is_exported_as_it_was(tmp_path, monkeypatch):
    long = Utterance("ben", np.arange(2), np.zeros((4, 100), np.int64), np.zeros(100, np.int64))
    monkeypatch.setattr(speech_export, "load_utterances", lambda work: [long, long])
    restore(SHIPPED, tmp_path)
    export(tmp_path, tmp_path / "out")
    for name in ("model.safetensors", "config.json", "codec_config.json"):
        assert (tmp_path / "out" / name).read_bytes() == (SHIPPED / name).read_bytes(), name


def test_more_codebooks_keep_what_is_known_and_tell_more(tmp_path, monkeypatch):
    run = CodecRun(CODEC_PLAN, SHAPE, clips())
    for _ in range(6):
        run.step()
    run.save(tmp_path / "codec.pt")
    before = load_codec(tmp_path / "codec.pt")
    raw = published_config()
    raw["audio_encoder_config"] |= {"num_codebooks": 2, "vocab_size": 18}
    voice = VoiceRun(VoicePlan(), parse_config(raw | {"codebook_temperatures": [1.0] * 2}), [])
    voice.save(tmp_path / "voice.pt")
    raw["audio_encoder_config"]["num_codebooks"] = 3
    monkeypatch.setattr(speech_grow, "published_config", lambda: raw | {"codebook_temperatures": [1.0] * 3})
    facts = [{"voice": "ada", "phones": ["sil", "."], "ends": [0.5, 1.0]} for _ in clips()]
    save_shard(tmp_path / "shard0000.npz", clips(), facts)
    (tmp_path / "shard0000.codes.pt").touch()
    grow(tmp_path)
    after, waves = load_codec(tmp_path / "codec.pt"), torch.from_numpy(np.stack(clips()) / np.float32(32767))
    assert not (tmp_path / "shard0000.codes.pt").exists()
    assert torch.equal(after.to_codes(waves)[:, :2], before.to_codes(waves))
    reduced = before.quantiser.reduce(before.encoder(waves))
    errors = [(c.quantiser.lookup(c.quantiser.encode(reduced)) - reduced).square().mean() for c in (before, after)]
    assert errors[1] < errors[0]
    grown = VoiceRun(VoicePlan(), parse_config(raw | {"codebook_temperatures": [1.0] * 3}), [])
    grown.load(tmp_path / "voice.pt")
    assert len(grown.weights.audio) == 54
    assert all(torch.equal(a, b[: len(a)]) for a, b in zip(voice.tensors, grown.tensors, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(grown.averaged, grown.tensors, strict=True))


def test_the_decoder_run_leaves_the_codes_alone(tmp_path):
    run = CodecRun(CODEC_PLAN, SHAPE, clips())
    for _ in range(6):
        run.step()
    run.save(tmp_path / "codec.pt")
    start = load_codec(tmp_path / "codec.pt")
    again = DecoderRun(CODEC_PLAN, start, clips(), None)
    wave = torch.from_numpy(clips()[0][:9_600].astype(np.float32) / 32767)[None]
    codes, before = start.to_codes(wave), start.to_sound(start.to_codes(wave))
    for _ in range(2):
        again.step()
    assert torch.equal(again.codec.to_codes(wave), codes)
    assert not torch.equal(again.codec.to_sound(codes), before)


def test_the_decoder_run_against_critics_resumes_without_a_seam(tmp_path):
    start = CodecRun(CODEC_PLAN, SHAPE, clips()).codec

    def fresh():
        return DecoderRun(CODEC_PLAN, start, clips(), Adversary(2e-4, seed=0))

    whole, first, second = fresh(), fresh(), fresh()
    expected = [whole.step() for _ in range(DecoderRun.CRITICS_EVERY + 2)]  # critics on both sides of the seam
    got = [first.step()]
    first.save(tmp_path / "decoder.pt")
    second.load(tmp_path / "decoder.pt")
    assert got + [second.step() for _ in range(DecoderRun.CRITICS_EVERY + 1)] == expected


def test_the_phase_may_start_anywhere_but_must_turn_as_fast():
    t = torch.arange(24_000) / 24_000
    tone = 0.3 * torch.sin(2 * torch.pi * 440 * t)[None]
    late, sharp = 0.3 * torch.cos(2 * torch.pi * 440 * t)[None], 0.3 * torch.sin(2 * torch.pi * 480 * t)[None]
    loss = PhaseAdvance()
    assert max(loss(tone, tone), loss(late, tone)) < loss(sharp, tone) / 4


def test_a_sequence_teaches_each_row_at_the_position_before_it():
    builder = Builder(config())
    u = utterances(1)[0]
    made = builder.sequence([u], None)
    count, frames = len(u.ids), u.codes.shape[1]
    begin = 2 + count  # <|tts|> <|text|> phones, then <|audio|>
    assert made["tokens"].tolist() == [0, 1, *u.ids.tolist(), 2] + [-1] * (frames + 1)
    assert made["active"].tolist() == [False] * begin + [True] * (frames + 1) + [False]
    assert made["targets"][begin : begin + frames, 0].tolist() == u.codes[0].tolist()
    assert made["targets"][begin + 1 : begin + 1 + frames, 1].tolist() == u.codes[1].tolist()
    assert made["targets"][begin, 1] == -1 and made["targets"][begin + frames, 0] == -1
    assert made["index"][begin : begin + frames].tolist() == u.cursor.tolist()
    moves = made["advance"][begin : begin + frames]
    assert np.cumsum(moves)[-1] == count and (np.cumsum(moves)[:-1] == u.cursor[1:]).all()
    for at in range(begin + 1, begin + frames):
        held = made["spent"][at - 1] + 1 if made["index"][at] == made["index"][at - 1] else 0
        assert made["spent"][at] == held


def test_a_cut_at_a_pause_loses_no_frame():
    u = utterances(1)[0]
    first, second = split_at_pause(u, IDS[","], IDS["sil"])
    assert np.array_equal(np.concatenate([first.codes, second.codes], axis=1), u.codes)
    assert first.ids[-1] == IDS[","] and second.ids[0] == IDS["sil"]
    assert second.cursor[0] == 0 and second.cursor[1] == 1 and second.cursor[-1] == len(second.ids) - 1


@pytest.fixture(scope="module")
def heart():
    for name in ("hibari", "onnx", "onnxruntime"):
        pytest.importorskip(name, reason="the teacher's packages are missing; pip install -e '.[train]' brings them")
    return Heart()


def test_every_phone_has_a_symbol_and_only_stressed_vowels_a_mark():
    written = {phone: symbol(phone) for phone in PHONES}
    assert written["sil"] == "" and written["#"] == " " and written["?"] == "?"
    assert (written["iy1"], written["iy"], written["er1"], written["er"]) == ("ˈi", "i", "ˈɜɹ", "əɹ")
    assert {phone for phone in PHONES if "ˈ" in written[phone]} == {phone for phone in PHONES if phone[-1] == "1"}
    assert len(set(written.values())) == len(PHONES)


def test_a_frame_belongs_to_the_phone_at_its_centre():
    assert align(["sil", "s", "#", "ow1", "."], [0.06, 0.1, 0.1, 0.17, 0.2], 6).tolist() == [0, 1, 3, 3, 4, 4]


def test_the_teacher_says_the_phones_that_the_voice_will_read(heart):
    line = "It is so, a bee, B."
    text = PhoneEncoder.load(SHIPPED).phones_of(line)
    symbols = heart.symbols(line, text)
    assert "".join(symbols) == "ɪt ɪz sˌO,ə bˈi,bˈi."
    wave, ends = heart(symbols, 1.0, 0)
    assert len(ends) == len(text.ids) and ends == sorted(ends)
    assert all(ends[at] == ends[at - 1] for at, each in enumerate(symbols) if each == " ")
    assert 0 < len(wave) / SAMPLE_RATE - ends[-1] < 0.2
    slow, later = heart(symbols, 0.5, 0)
    assert len(slow) > 1.5 * len(wave) and later[-1] > 1.5 * ends[-1]
    assert np.array_equal(heart(symbols, 1.0, 0)[0], wave)


@pytest.mark.parametrize("voice", VOICES, ids=lambda voice: voice.name)
def test_speech_is_cut_to_its_phones_and_told_with_them(heart, voice):
    if voice.pitch != voice.formants:
        pytest.importorskip("pyworld", reason="lowers this voice's pitch; pip install -e '.[train]' brings it")
    (clip,), (fact,) = speak(["So, a bee."], voice)
    assert fact["text"] == "So, a bee." and fact["voice"] == voice.name
    assert fact["phones"] == ["sil", "s", "ow1", ",", "ax", "#", "b", "iy1", "."]
    assert fact["ends"][0] == pytest.approx(LEAD_S) and fact["ends"] == sorted(fact["ends"])
    assert fact["ends"][-1] == pytest.approx(fact["ends"][-2] + TAIL_S)
    assert len(clip) / SAMPLE_RATE == pytest.approx(fact["ends"][-1], abs=0.001)
    first, last = sounding(clip.astype(np.float32))
    assert (first, last) == pytest.approx((LEAD_S, fact["ends"][-2]), abs=0.011)


class Repeats:
    """Hears what it is told to, whatever the sound."""

    name = "repeats"

    def __init__(self, *heard):
        self.heard = heard

    def begin(self):
        self.left = iter(self.heard)

    def words(self, text):
        return text.lower().split()

    def __call__(self, pcm):
        return self.words(next(self.left))


def test_a_rate_is_over_words_and_says_how_sure_it_is(capsys):
    sound = [np.zeros(2_400, np.float32)] * 2
    rate(Repeats("call Ann now", "at for"), "names", sound, ["Call Ann now", "At four"])
    assert capsys.readouterr().out == "names, repeats: WER 20.0 ± 17.6 % (n = 5 words, 2 utterances)\n"
    rate(Repeats("at four", "at four"), "names", sound, ["At four", "At four"])
    assert capsys.readouterr().out == "names, repeats: WER 0.0 ± 0.0 % (n = 4 words, 2 utterances)\n"


def test_the_shipped_lexicon_says_words_as_they_were_corrected():
    encoder = PhoneEncoder.load(SHIPPED)
    assert corrected() and {word: tuple(encoder.spoken(word)) for word in corrected()} == corrected()


@pytest.mark.parametrize(
    ("heard", "taken"),
    [("good bye to the carpark", "goodbye to the car park"), ("good buy to a car park", "good buy to a car park")],
)
def test_a_word_heard_in_two_parts_is_that_word_and_no_other_is(heard, taken):
    assert " ".join(as_written(heard.split(" "), ["goodbye", "to", "the", "car", "park"])) == taken
