"""Whether a model speaks sense: random weights do not, the shipped model ends its replies, and bounds are bounds."""

from dataclasses import replace
from pathlib import Path

import pytest

from capsules import ExecContext
from llm_engine import HybridLLM
from llm_engine.chat import Chat
from llm_engine.firstlook import MOST_BITS, FirstLook, look_at
from tests.fakes.gguf_files import write_decoder

GOOD = FirstLook(0.9, 0.1, 0.8, "Paris.", True, False)


@pytest.mark.slow
def test_random_weights_do_not_speak_sense_and_the_engine_is_empty_afterwards(tmp_path: Path) -> None:
    write_decoder(tmp_path / "random.gguf")
    llm = HybridLLM.load(tmp_path / "random.gguf", ExecContext("cpu"), "float32", 256)
    chat = Chat.load(tmp_path / "random.gguf")
    look = look_at(llm, chat)
    assert look.trouble.startswith("this file loads but does not speak sense; plain English costs it 3.")
    assert not look.ended and look.reply and llm.position == 0
    assert look_at(llm, chat) == look


@pytest.mark.parametrize(
    ("look", "trouble"),
    [
        (GOOD, ""),
        (replace(GOOD, text_bits=MOST_BITS), ""),
        (replace(GOOD, text_bits=MOST_BITS + 0.1), "does not speak sense"),
        (replace(GOOD, answer_bits=MOST_BITS + 0.1), "loses its way in its own chat format"),
        (replace(GOOD, ended=False), ""),  # it talks at length, and would have ended behind the short answer
        (replace(GOOD, ended=False, end_chance=0.1), "does not end its replies"),
        (replace(GOOD, end_chance=0.1), ""),
        (replace(GOOD, thinks=True), "has no switch"),
        (replace(GOOD, text_bits=3.0, answer_bits=3.0, narrow=True), ""),
        (replace(GOOD, ended=False, end_chance=0.1, narrow=True), "does not end its replies"),
    ],
)
def test_what_is_out_of_bounds_is_one_sentence(look: FirstLook, trouble: str) -> None:
    assert trouble in look.trouble and bool(trouble) == bool(look.trouble)
    assert ". " not in look.trouble and "\n" not in look.trouble
