"""The engine's API: speak, decode, voices, and the verbs of a capsule. Wiring only.

    ctx = ExecContext("cpu")
    tts = HiggsTTS.load(path, ctx)
    for pcm in tts.speak("Good morning.", first_chunk="exact"): ...

A scheduler that shares the device drives it row by row instead: `open`, `begin` (text, piece by piece), `step` (one
row or one prefill), `take_audio` (at most one codec window), `cancel`, `cut`, `snapshot`, `restore`.
Synchronous; call it from one thread at a time.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsules import Capsule, ExecContext, Fingerprint, Role, restore, snapshot
from capsules.arguments import a_function, a_kind, shown, whole
from capsules.exec.switches import switched
from capsules.nn import embed
from capsules.prepared import Tell
from capsules.weights import Progress
from tts_engine.bpe_frontend import BpeFrontend
from tts_engine.chunks import Chunks, Sound
from tts_engine.codec import read_codec_config
from tts_engine.codec_files import codec_of
from tts_engine.config import TTSConfig, load_config
from tts_engine.errors import ConfigRefused, EngineMisuse
from tts_engine.frontend import Frontend
from tts_engine.generator import Generator, SessionFacts, Stepped
from tts_engine.graphs import Graphs, plan_shapes
from tts_engine.phone_frontend import PhoneFrontend
from tts_engine.piece import PieceFacts
from tts_engine.reference import Voice, checked_codes, prepare_reference
from tts_engine.sampling import SamplingLike, VoiceSampling, check_sampling
from tts_engine.state import SCOPE, declare
from tts_engine.steps import Steps, make_tables
from tts_engine.streaming import Costs, Schedule
from tts_engine.weights import DTYPES, fused, load_checkpoint

CODE = "tts_engine/1"  # raised whenever the same bytes would mean something else
DEFAULT_POSITIONS = 4096


class HiggsTTS:
    """One voice model, one session at a time, all state in declared buffers."""

    def __init__(
        self,
        ctx: ExecContext,
        frontend: Frontend,
        steps: Steps,
        graphs: Graphs,
        fingerprint: Fingerprint,
        max_positions: int,
    ) -> None:
        self.config, self.codec = steps.config, steps.codec
        self.fingerprint, self.max_positions = fingerprint, max_positions
        self._ctx, self._frontend, self._graphs = ctx, frontend, graphs
        self._generator = Generator(frontend, steps, graphs, max_positions)
        self._chunks = Chunks(self._generator, steps, graphs)
        self.set_sampling(VoiceSampling())
        self.open()

    @classmethod
    def load(
        cls,
        path: str | Path,
        ctx: ExecContext,
        dtype: str = "float32",
        max_positions: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        frontend: Frontend | None = None,
        aside: Path | None = None,
        tell: Tell = lambda line: None,
    ) -> "HiggsTTS":
        """Load from a checkpoint directory; everything is captured before this returns.

        dtype          "float32" or "bfloat16", of the backbone and its cache; "float8" is bfloat16 with the layers'
                       matrices packed into block-scaled E4M3 while loading, "int4" with these in four bits; "int8", on
                       a processor, packs all matrices in eight bits. The codec is always float32
        max_positions  for one session, at most the checkpoint's; the KV cache is allocated now
        frontend       replaces the checkpoint's own
        aside, tell    as for `load_checkpoint`
        Raises ConfigRefused, CheckpointRefused; EngineMisuse for a meaningless argument.
        """
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise ConfigRefused(f"dtype is {shown(dtype)}; {', '.join(DTYPES)}, by name, are implemented")
        a_kind(ConfigRefused, "path", path, str | Path, "a checkpoint directory")
        a_kind(EngineMisuse, "ctx", ctx, ExecContext, "an ExecContext")
        a_function(EngineMisuse, "progress", progress)
        if max_positions is not None:
            whole(EngineMisuse, "max_positions", max_positions, least=1)
        if dtype == "int8" and ctx.device.type != "cpu":
            raise ConfigRefused(f"dtype is int8 on {ctx.device}; it is for a processor: take float8, eight bits too")
        config = load_config(folder := Path(path))
        frontend = frontend or _frontend(folder, config)
        positions = min(max_positions or DEFAULT_POSITIONS, config.backbone.max_positions)
        checkpoint = load_checkpoint(folder, config, ctx.device, dtype, progress, aside, tell, fixed=ctx.fixed)
        codec_config = read_codec_config(folder)
        codec = codec_of(codec_config, checkpoint.codec, config, ctx.device)
        shapes = plan_shapes(positions, codec.left_frames, codec.right_frames)
        state = declare(ctx, config, shapes.capacity, DTYPES[dtype], shapes.chunks[-1], max(shapes.windows))
        opening = embed(torch.tensor([frontend.specials["<|audio|>"]]), checkpoint.backbone.text)
        tables = make_tables(config, shapes.capacity, DTYPES[dtype], ctx.device, opening)
        _adopt(ctx, "w", fused(checkpoint.backbone, config))
        _adopt(ctx, "codec", codec.tensors)
        _adopt(ctx, "table", vars(tables))
        steps = Steps(config, checkpoint.backbone, tables, codec, state, frontend.specials["<|audio|>"])
        graphs = Graphs(ctx, steps, shapes, f"{config} {codec_config} {steps.audio_id}")
        fingerprint = Fingerprint.of(
            ctx, SCOPE, weights=checkpoint.digest, code=CODE, dtype=dtype, chunks=str(shapes.chunks)
        )
        return cls(ctx, frontend, steps, graphs, fingerprint, positions)

    # ------------------------------------------------------------------------- whole utterances

    def codes(
        self,
        text: str,
        voice: Voice | None = None,
        sampling: SamplingLike | None = None,
        max_rows: int | None = None,
    ) -> Tensor:
        """All codes of one text in a fresh session: int64 [Q, frames]. Raises TextRefused, ContextFull."""
        _check(text, voice, sampling, max_rows)
        self.open(voice)
        self.set_sampling(sampling or VoiceSampling())
        self.begin(text, max_rows=max_rows)
        while self.step().kind != "idle":
            pass
        pieces = self._generator.session.pieces
        if not pieces:
            return torch.zeros(self.config.audio.codebooks, 0, dtype=torch.int64)
        return pieces[-1].codes(self.config.audio, 0, pieces[-1].complete(self.config.audio))

    def speak(
        self,
        text: str | Iterable[str],
        voice: Voice | None = None,
        sampling: SamplingLike | None = None,
        first_chunk: str = "exact",
    ) -> Iterator[Tensor]:
        """Sound as it is made, float32 [samples], 24 kHz, in a fresh session.

        text         one text, or pieces as they come; each is grounded on those before, and requested when they end
        first_chunk  "exact": streamed sound equals one-shot sound; "fast": it starts earlier and differs a little
        Closing the iterator stops the engine at that row. Raises TextRefused, ContextFull.
        """
        _check(text if isinstance(text, str) else "", voice, sampling)
        self._chunks.schedule(first_chunk)
        a_kind(EngineMisuse, "text", text, Iterable, "text, or pieces of it,")
        return self._speak_parts([text] if isinstance(text, str) else text, voice, sampling, first_chunk)

    def _speak_parts(
        self, parts: Iterable[str], voice: Voice | None, sampling: SamplingLike | None, policy: str
    ) -> Iterator[Tensor]:
        self.open(voice)
        self.set_sampling(sampling or VoiceSampling())
        for part in parts:
            self.begin(part, policy)
            policy = "steady"
            while True:
                stepped = self.step()
                while (sound := self.take_audio()) is not None:
                    yield sound.pcm
                if stepped.kind == "idle":
                    break

    def decode(self, codes: Tensor) -> Tensor:
        """codes [Q, frames] -> float32 [960 · frames] on the host, in one shot."""
        checked = checked_codes(codes, (audio := self.config.audio).codebooks, audio.size).to(self._ctx.device)
        with switched(self._ctx.switches):  # the very kernels of a captured window
            return self.codec.to_sound(checked).cpu()

    # ------------------------------------------------------------------------- voices

    def voice(self, reference: Any, transcript: str | None = None, *, rate: int = 24_000, name: str = "") -> Voice:
        """A voice from a recording, with the capsule of its prefix. The session under way ends.

        reference   samples (see voices.prepare_reference)
        transcript  the words of the recording; cloning is much better with it
        Raises ReferenceRefused, ContextFull.
        """
        _check_voice(Voice(name, None, transcript))
        wave = prepare_reference(reference, rate)
        codes = self.codec.to_codes(wave.to(self._ctx.device)).cpu()
        return self.voice_from_codes(codes, transcript, name=name)

    def voice_from_codes(self, codes: Tensor, transcript: str | None = None, *, name: str = "") -> Voice:
        """The same from codes [Q, frames], for example those of something this engine said before."""
        audio = self.config.audio
        codes = checked_codes(codes, audio.codebooks, audio.size)
        self.open(Voice(name, codes, transcript))
        return Voice(name, codes, transcript, self.snapshot(name))

    # ------------------------------------------------------------------------- row by row

    def open(self, voice: Voice | None = None) -> None:
        """A fresh session of a voice: one restore if its capsule fits this engine, else a prefill of its codes."""
        voice = Voice("", None, None) if voice is None else voice
        _check_voice(voice)
        if voice.capsule is not None and self.fingerprint.difference(voice.capsule.fingerprint) is None:
            sampling = self._sampling
            self.restore(voice.capsule)
            self.set_sampling(sampling)
        else:
            audio, codes = self.config.audio, voice.codes
            codes = None if codes is None else checked_codes(codes, audio.codebooks, audio.size)
            self._generator.open_session(codes, voice.transcript, voice.name)

    def set_sampling(self, sampling: SamplingLike) -> None:
        """Set how all rows from now on are drawn. Raises EngineMisuse."""
        self._generator.inputs.write_sampling(sampling)
        self._sampling = sampling

    def begin(self, text: str, first_chunk: str = "exact", max_rows: int | None = None) -> None:
        """Say this after everything that was begun before. Raises TextRefused if there is nothing to say."""
        _check(text, max_rows=max_rows)
        self._chunks.schedule(first_chunk)
        self._generator.queue_text(text, first_chunk, max_rows)

    def roomy(self, text: str) -> bool:
        """Whether this could be said after everything begun before, without removing anything from the session."""
        _check(text)
        return self._generator.roomy(text)

    def step(self) -> Stepped:
        """Do one unit of work on the device: the prefill of a piece, or one row. "idle": there was none."""
        return self._generator.step()

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""
        return self._generator.busy

    def take_audio(self) -> Sound | None:
        """Decode the next chunk, if everything it needs is known."""
        return self._chunks.decode_next()

    def cancel(self) -> None:
        """Stop after the row that was just made; everything made so far stays and can be taken."""
        self._generator.cancel()

    def cut(self, frame: int, text: str | None = None) -> None:
        """Keep only the first `frame` frames of the session, which were heard, as if nothing later had been said.

        text  the heard part of the cut piece, which replaces the whole in the context (costs a prefill)
        Raises EngineMisuse for a frame that is not held.
        """
        a_kind(EngineMisuse, "frame", frame, Integral, "the number of a frame")
        a_kind(EngineMisuse, "text", text, str | None, "text or None")
        self._generator.cut(int(frame), text)

    @property
    def position(self) -> int:
        """Positions folded into the state."""
        return self._generator.session.position

    @property
    def frames(self) -> int:
        """Complete frames of the session, including those that have left the context."""
        return self._generator.session.frames(self.config.audio)

    @property
    def pieces(self) -> tuple[PieceFacts, ...]:
        """Facts about the pieces in the context, in order."""
        return self._generator.session.piece_facts(self.config.audio)

    # ------------------------------------------------------------------------- capsules

    def snapshot(self, name: str = "") -> Capsule:
        """The whole state at this row; sound that was not taken yet is in it as codes."""
        a_kind(EngineMisuse, "name", name, str, "text")
        return snapshot(
            self._ctx,
            SCOPE,
            self.position,
            self.fingerprint,
            tokens=self._generator.session.tokens(),
            label=name,
            host={"session": self._generator.session.to_json()},
        )

    def restore(self, capsule: Capsule) -> None:
        """Continue exactly where the capsule was taken. Raises CapsuleMismatch; then nothing has changed."""
        _check_capsule(capsule)
        restore(self._ctx, capsule, self.fingerprint)
        self._generator.adopt(dict(capsule.host["session"]))

    def facts(self) -> SessionFacts:
        """The facts from which `retrace` makes the session's state again without a capsule: JSON, 60 bytes a row."""
        return self._generator.row_facts()

    def retrace(self, facts: SessionFacts) -> Iterator[None]:
        """Go from the open session (a fresh one of the same voice, or an earlier state) to the one of these facts, bit
        for bit: all calls of its pieces are made again, a few rows between two yields. The current sampling applies.

        Raises RetraceFailed if a row comes out differently; then there is no session: `open` one.
        """
        return self._generator.retrace(facts)

    def rebuild(self, capsule: Capsule) -> None:
        """Make the same session from the capsule's facts, if its bytes do not fit: all pieces are fed anew."""
        _check_capsule(capsule)
        if "session" not in capsule.host:
            raise EngineMisuse(f"capsule {capsule.label!r} of scope {capsule.scope!r} holds no session of speech")
        self._generator.rebuild(dict(capsule.host["session"]))

    # ------------------------------------------------------------------------- pace

    def measure(self, rows: int = 8, clock: Callable[[], float] = time.perf_counter) -> Costs:
        """Time rows and windows on this machine and fit the first chunks to it. Only while idle; the state stays."""
        whole(EngineMisuse, "rows", rows, least=1)
        if self.busy:
            raise EngineMisuse("measure while speaking; do it once after loading")
        before = self.snapshot()
        self._generator.open_session(None, None)
        row_ms = self._timed_ms(lambda: self._graphs.decode(self.position), clock, rows)
        size = max(self._graphs.shapes.windows)
        self._graphs.window(size)
        window_ms = self._timed_ms(lambda: self._graphs.window(size), clock)
        costs = Costs(row_ms, window_ms / size)
        self.restore(before)
        self.fit(costs)
        return costs

    def _timed_ms(self, call: Callable[[], None], clock: Callable[[], float], count: int = 1) -> float:
        """Time of one call out of `count`, until the device has finished all."""
        self._ctx.synchronize()
        began = clock()
        for _ in range(count):
            call()
        self._ctx.synchronize()
        return (clock() - began) * 1e3 / count

    def fit(self, costs: Costs | None) -> None:
        """Choose first chunks for a machine of this pace, so that playback never waits. None: the initial ones."""
        a_kind(EngineMisuse, "costs", costs, Costs | None, "a Costs, as measure gives it, or None")
        self._chunks.fit(costs)

    def schedule(self, policy: str) -> Schedule:
        """The chunks of a first-chunk policy on this machine. Raises EngineMisuse."""
        return self._chunks.schedule(policy)


def _check(
    text: str, voice: Voice | None = None, sampling: SamplingLike | None = None, max_rows: int | None = None
) -> None:
    """Check all arguments of a call before the first of them takes effect. Raises EngineMisuse."""
    a_kind(EngineMisuse, "text", text, str, "text")
    if voice is not None:
        _check_voice(voice)
    if sampling is not None:
        check_sampling(sampling)
    if max_rows is not None:
        whole(EngineMisuse, "max_rows", max_rows, least=1)


def _check_voice(voice: Voice) -> None:
    needed = "a Voice, as HiggsTTS.voice and voice_from_codes give it, or None for a voice of the model's choice,"
    a_kind(EngineMisuse, "voice", voice, Voice, needed)
    a_kind(EngineMisuse, "the voice's name", voice.name, str, "text")
    a_kind(EngineMisuse, "the voice's transcript", voice.transcript, str | None, "text or None")


def _check_capsule(capsule: Capsule) -> None:
    a_kind(EngineMisuse, "capsule", capsule, Capsule, "a capsule, as snapshot gives it,")


def _frontend(folder: Path, config: TTSConfig) -> Frontend:
    """The front end that the configuration names."""
    return PhoneFrontend(folder, config.special_tokens) if config.frontend == "phones" else BpeFrontend(folder)


def _adopt(ctx: ExecContext, group: str, tensors: Any) -> None:
    for name, tensor in tensors.items():
        if tensor.device.type == ctx.device.type:  # else no step reads it
            ctx.adopt(f"{SCOPE}.{group}.{name}", tensor, role=Role.WEIGHT)
