"""The names that programs outside rely on: each can be imported, called and asked as it was promised, on the small
models that ship and on a miniature in the published layout."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor

from capsules import Capsule, ExecContext, Registry
from llm_engine import HybridLLM, Sampling
from tests.tts_engine.miniature import Size, write_miniature
from tts_engine import HiggsTTS

ROOT = Path(__file__).parents[1]
TEXT = "Good morning."


@pytest.fixture(scope="module")
def ctx() -> ExecContext:
    return ExecContext("cpu")


@pytest.fixture(scope="module")
def llm(ctx: ExecContext) -> HybridLLM:
    return HybridLLM.load(ROOT / "llm_engine" / "tiny", ctx, dtype="float32", max_positions=256)


@pytest.fixture(scope="module")
def tts(ctx: ExecContext) -> HiggsTTS:
    return HiggsTTS.load(ROOT / "tts_engine" / "tiny", ctx, dtype="float32")


def test_a_language_model_appends_decodes_and_goes_back(llm: HybridLLM) -> None:
    sampling = Sampling(temperature=0.7, top_k=20, top_p=0.9, seed=1)
    llm.reset()
    logits = llm.append([3, 4, 5])
    assert logits.shape == (llm.config.vocab_size,) and logits.dtype == torch.float32
    capsule = llm.snapshot(name="ada")
    assert isinstance(capsule, Capsule) and capsule.label == "ada" and llm.position == 3
    tokens = llm.decode(8, sampling)
    assert len(tokens) == 8 and all(type(token) is int for token in tokens) and llm.position == 11
    llm.restore(capsule)
    assert llm.position == 3 and llm.decode(8, sampling) == tokens
    llm.rollback(3)
    assert llm.position == 3 and llm.decode(8, sampling) == tokens
    llm.reset()
    assert llm.position == 0
    llm.append([3, 4, 5])
    assert llm.decode(4, Sampling.greedy()) == list(llm.tokens[3:])


@pytest.mark.slow
def test_a_voice_model_speaks_decodes_and_takes_voices(tts: HiggsTTS, tmp_path: Path) -> None:
    codes = tts.codes(TEXT, voice=None, sampling=Sampling(temperature=0.8, top_k=50, seed=3), max_rows=40)
    assert codes.dtype == torch.int64 and codes.dim() == 2
    audio = tts.decode(codes)
    assert audio.dtype == torch.float32 and audio.shape == (960 * codes.shape[1],)
    made = list(tts.speak(TEXT, voice=None, sampling=Sampling.greedy(), first_chunk="exact"))
    assert all(pcm.dtype == torch.float32 and pcm.dim() == 1 for pcm in made)
    assert torch.equal(torch.cat(made), tts.decode(tts.codes(TEXT, sampling=Sampling.greedy())))
    soundfile.write(tmp_path / "reference.wav", audio.numpy(), 24_000, subtype="FLOAT")
    for reference in (audio, audio.numpy(), tmp_path / "reference.wav", str(tmp_path / "reference.wav")):
        voice = tts.voice(reference, transcript=None)
        assert isinstance(voice.capsule, Capsule)
        assert tts.codes(TEXT, voice, max_rows=20).shape[0] == codes.shape[0]


@pytest.mark.slow
def test_the_published_layout_has_eight_codebooks(tmp_path: Path) -> None:
    tts = HiggsTTS.load(write_miniature(tmp_path, Size(), seed=0), ExecContext("cpu"), max_positions=256)
    codes = tts.codes(TEXT, max_rows=20)
    assert codes.shape[0] == 8 and codes.dtype == torch.int64
    spoken = [pcm for pcm in tts.speak(TEXT) if isinstance(pcm, Tensor)]
    assert np.isfinite(torch.cat(spoken).numpy()).all()


SIGNATURES = {
    ExecContext: "device",
    Registry.standard: "ctx, budgets, clock",
    HybridLLM.load: "path, ctx, dtype='float32', max_positions=4096",
    HybridLLM.reset: "self",
    HybridLLM.append: "self, ids",
    HybridLLM.decode: "self, n, sampling",
    HybridLLM.snapshot: "self, name",
    HybridLLM.restore: "self, capsule",
    HybridLLM.rollback: "self, position",
    Sampling.greedy: "",
    HiggsTTS.load: "path, ctx, dtype='float32'",
    HiggsTTS.codes: "self, text, voice=None, sampling, max_rows",
    HiggsTTS.speak: "self, text, voice=None, sampling, first_chunk='exact'",
    HiggsTTS.voice: "self, reference, transcript=None",
    HiggsTTS.decode: "self, codes",
}


@pytest.mark.parametrize(("function", "promised"), SIGNATURES.items(), ids=[f.__qualname__ for f in SIGNATURES])
def test_arguments_come_in_the_promised_order(function: object, promised: str) -> None:
    """Names, order, and the defaults that were promised; more may follow, but nothing that must be given."""
    parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    wanted = [part.partition("=") for part in promised.split(", ") if part]
    for found, (name, _, default) in zip(parameters, wanted, strict=False):
        assert found.name == name
        assert not default or repr(found.default) == default
    assert len(parameters) >= len(wanted)
    assert all(p.default is not inspect.Parameter.empty for p in parameters[len(wanted) :])
