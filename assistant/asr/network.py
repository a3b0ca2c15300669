"""Moonshine v1's two graphs: the sound of some seconds in, tokens out. No streaming, no clock, no state between calls.

The makers' package runs these files too, but decodes every token anew for every pass, on all cores, and says nothing of
how sure it is. Here a pass gets the text of the pass before as a *draft*: the decoder reads it in one step, and only
what it would have written otherwise is written token by token: greedy decoding but for the rounding of eight bits, with
a third of the work. The same step can *hold* the beginning of the draft, so that words once called stable
stay. One thread; the call lets Python run on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from assistant.asr.level import gain
from assistant.asr.tokens import BEGIN, END, Tokens
from assistant.base.sound import HEARING_RATE, Pcm

BEHIND_S = 0.5
"""Silence put behind the sound, and none before it. The network learnt from whole clips, and where a word is cut off
tight it makes one up behind it, the likelier the more silence there is in front. As the hearing stage uses it, of 116
utterances of a word or two in four synthetic voices 11.6 % of the words were wrong instead of 20.1 (0.1 s on both
sides), of 40 sentences 1.8 instead of 2.7."""
TOKENS_PER_S = 6.5
"""The makers' limit; fast speech has five."""
FEWEST_TOKENS = 8

Bias = Callable[[Sequence[int], np.ndarray], np.ndarray]
"""(tokens so far, logits [V] float32) -> logits, with what is expected lifted."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Tokens without begin and end, and the probability of each."""

    tokens: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()


class Network:
    """One for all talks: calls do not see each other, and at most half the cores decode at a time."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # a waiting thread would burn a core

        def load(name: str) -> Any:
            return onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])

        self._encoder, self._decoder = load("encoder_model.ort"), load("decoder_model_merged.ort")
        kept = [each for each in self._decoder.get_inputs() if each.name.startswith("past_key_values.")]
        self._names = [each.name for each in kept]
        self._empty = {each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32) for each in kept}
        self._seats = threading.BoundedSemaphore(max(1, (os.cpu_count() or 1) // (2 * threads)))
        self.tokens = Tokens.load(folder / "tokenizer.bin")

    def write(self, sound: Pcm, draft: Sequence[int] = (), held: int = 0, bias: Bias | None = None) -> Decoded:
        """[n] samples -> what they say. `draft`: what it may begin with; the first `held` of it: what it does."""
        with self._seats:
            louder = sound * np.float32(gain(sound))
            return self._write(np.pad(louder, (0, int(BEHIND_S * HEARING_RATE))), draft, held, bias)

    def _write(self, sound: Pcm, draft: Sequence[int], held: int, bias: Bias | None) -> Decoded:
        mask = np.ones((1, sound.size), np.int64)
        states = self._encoder.run(None, {"input_values": sound[None], "attention_mask": mask})[0]
        fixed = {"encoder_attention_mask": mask, "encoder_hidden_states": states}

        def step(ids: Sequence[int], past: dict[str, Any], going_on: bool) -> tuple[np.ndarray, dict[str, Any]]:
            fed = {"input_ids": np.array([ids], np.int64), "use_cache_branch": np.array([going_on])}
            logits, *new = self._decoder.run(None, fixed | fed | past)
            return logits[0], dict(zip(self._names, new, strict=True))  # [S, V]

        rows, past = step([BEGIN, *draft], self._empty, False)
        tokens: list[int] = []
        chances: list[float] = []
        while True:  # each row of logits names the token that follows
            row = rows[len(tokens)]
            lifted = row if bias is None else bias(tokens, row)
            best = draft[len(tokens)] if len(tokens) < held else int(lifted.argmax())
            tokens.append(best)
            chances.append(float(1.0 / np.exp(row - row[best]).sum()))
            if len(tokens) > len(draft) or best != draft[len(tokens) - 1]:
                break
        read = len(tokens)  # begin and the part of the draft that holds
        past = {name: a[:, :, :read] if ".decoder." in name else a for name, a in past.items()}
        limit = max(FEWEST_TOKENS, held, int(sound.size / HEARING_RATE * TOKENS_PER_S) + 1)
        while tokens[-1] != END and len(tokens) < limit:
            rows, new = step(tokens[-1:], past, True)
            past |= {name: a for name, a in new.items() if ".decoder." in name}  # what hears the sound never changes
            row = rows[-1]
            best = int((row if bias is None else bias(tokens, row)).argmax())
            tokens.append(best)
            chances.append(float(1.0 / np.exp(row - row[best]).sum()))
        count = len(tokens) - (tokens[-1] == END)
        return Decoded(tuple(tokens[:count]), tuple(chances[:count]))
