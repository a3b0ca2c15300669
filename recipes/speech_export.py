"""Write the trained voice as a checkpoint directory in the published layout, with its codec, voices and card."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from recipes.codec import CodecPlan, CodecRun, load_codec
from recipes.speech_data import Utterance, load_utterances
from recipes.speech_training import (
    DEFAULT_VOICE,
    REFERENCE_FRAMES,
    VoicePlan,
    VoiceRun,
    parameters,
    published_config,
)
from tts_engine.config import parse_config
from tts_engine.istft_codec import CodecShape
from tts_engine.weights import load_checkpoint, to_checkpoint


def export(work: Path, out: Path) -> None:
    """config.json, codec_config.json, model.safetensors, voices.json. The lexicon comes from recipes.lexicon."""
    config = parse_config(published_config())
    utterances = load_utterances(work)
    run = VoiceRun(VoicePlan(), config, utterances)
    run.load(work / "voice.pt")
    run.use(run.averaged)
    codec_path = work / "decoder.pt"
    codec = load_codec(codec_path if codec_path.exists() else work / "codec.pt")
    out.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: tensor.to(torch.bfloat16)
        for name, tensor in to_checkpoint(run.weights, config, codec.state_dict()).items()
    }
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(published_config(), indent=1) + "\n")
    (out / "codec_config.json").write_text(json.dumps(codec.shape.to_json(), indent=1) + "\n")
    voices = {DEFAULT_VOICE: None} | {
        voice: reference(utterances, voice) for voice in sorted({u.voice for u in utterances}) if voice != DEFAULT_VOICE
    }
    (out / "voices.json").write_text(json.dumps(voices) + "\n")
    digest = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
    size = (out / "model.safetensors").stat().st_size
    print(f"step {run.step_index}, {size / 1e6:.2f} MB, sha256 {digest}")


def restore(folder: Path, work: Path) -> None:
    """The inverse of `export`: codec.pt and voice.pt, at step 0 with fresh optimisers, from shipped weights."""
    config = parse_config(json.loads((folder / "config.json").read_text()))
    checkpoint = load_checkpoint(folder, config, torch.device("cpu"))
    run = VoiceRun(VoicePlan(), config, [])
    run.averaged = parameters(checkpoint.backbone)
    run.use(run.averaged)
    work.mkdir(parents=True, exist_ok=True)
    run.save(work / "voice.pt")
    shape = CodecShape.parse(json.loads((folder / "codec_config.json").read_text()))
    codec = CodecRun(CodecPlan(), shape, [])
    codec.codec.load_state_dict({name: tensor.float() for name, tensor in checkpoint.codec.items()})
    codec.trainer.total.copy_(codec.codec.quantiser.codebook)
    codec.trainer.on = True
    codec.save(work / "codec.pt")


def reference(utterances: list[Utterance], voice: str) -> list[list[int]]:
    """A second of the voice, [Q][T]: from the middle of one of its longer training sentences."""
    candidates = [u for u in utterances if u.voice == voice and u.codes.shape[1] > 3 * REFERENCE_FRAMES]
    chosen = candidates[1]
    return [[int(c) for c in row] for row in chosen.codes[:, REFERENCE_FRAMES : 2 * REFERENCE_FRAMES]]
