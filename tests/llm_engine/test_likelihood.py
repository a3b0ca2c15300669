"""Whole texts, many at once, are as likely as the engine finds them token by token."""

import math
from pathlib import Path

import pytest
import torch

from capsules import ExecContext
from llm_engine import HybridLLM
from llm_engine.likelihood import Likelihood
from llm_engine.tokenizer import TextTokenizer

TINY = Path(__file__).parents[2] / "llm_engine" / "tiny"
BEGIN = "<|im_start|>user\n"
TEXTS = tuple(f" {text}<|im_end|>" for text in ("what time is it", "stop", "set a timer for 9 minutes"))


def test_texts_are_as_likely_together_as_token_by_token() -> None:
    found = Likelihood(TINY)(BEGIN, TEXTS)
    llm = HybridLLM.load(TINY, ExecContext("cpu"), dtype="float32", max_positions=64)
    tokens = TextTokenizer.load(TINY)
    for text, chances in zip(TEXTS, found, strict=True):
        begin, ids = tokens.encode(BEGIN), tokens.encode(text)
        llm.reset()
        llm.append(begin)
        for token, chance in zip(ids, chances, strict=True):
            assert chance == pytest.approx(float(torch.log_softmax(llm.logits, -1)[token]), abs=1e-3)
            llm.append([token])
        llm.reset()
        llm.append(begin)
        assert math.exp(chances[-1]) == pytest.approx(llm.turn_end_probability(ids[:-1]), abs=1e-3)
