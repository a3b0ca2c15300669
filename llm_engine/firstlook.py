"""A first look at a loaded model: whether it speaks sense. A file with tensors in a wrong order loads like any other.

Three things are asked, token by token as in a talk: how well the model foresees a fixed English paragraph and a fixed
answer, and whether its reply to the question of that answer ends by the template's stop token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from llm_engine.chat import Chat
from llm_engine.engine import HybridLLM
from llm_engine.sampling import Sampling

TEXT = (
    "The old lighthouse stood at the end of the pier, where the fishermen used to mend their nets in the evening. When "
    "the wind came from the west, its door would open and close all night long, and nobody could sleep."
)
QUESTION, ANSWER = "What is the capital of France?", "The capital of France is Paris."
LONGEST_REPLY = 64
"""Tokens of its own reply, which needs some ten."""
MOST_BITS = 1.3
"""Per letter. English costs people who read it 0.6 to 1.3 bits, and 2.1 bits if words are known by their frequency
alone (Shannon 1951). SmolLM2-135M, the smallest published model that runs here, needs 0.9. With queries in a wrong
order it needs 2.6, with one matrix upside down 1.4, with noise of a fifth in all matrices 1.9; random weights need 3.6.
Smaller damage is not found here: queries and keys both left in the file's order cost that model 1.2."""
LIKELY = 0.5
_LEAST = 2.0**-100  # of a probability: one of 0, or one that is not a number, has no logarithm


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Bits are per letter of the text. `narrow`: a model that was taught its own phrases alone, so that only the end of
    its reply counts."""

    text_bits: float
    answer_bits: float
    end_chance: float
    """The probability of a stop token behind the fixed answer."""
    reply: str
    ended: bool
    """Whether its own reply ended by a stop token."""
    thinks: bool
    """Whether the template begins every reply with a thought, so that there is no switch against it."""
    narrow: bool = False

    @property
    def trouble(self) -> str:
        """One sentence about what is out of bounds; empty: it speaks sense."""
        if not self.narrow and self.text_bits > MOST_BITS:
            return (
                f"this file loads but does not speak sense; plain English costs it {self.text_bits:.1f} bits a letter, "
                f"and models that work need about 1: fetch it again, or take another version of it"
            )
        if not self.narrow and self.answer_bits > MOST_BITS:
            return (
                "this file speaks English but loses its way in its own chat format; take another version of it, made "
                "for chats (instruct)"
            )
        if not self.ended and self.end_chance < LIKELY:
            return "this file does not end its replies; take a version of it that was made for chats (instruct)"
        if self.thinks:
            return "this model thinks before each reply, and its template has no switch for it; its replies come late"
        return ""


def look_at(llm: HybridLLM, chat: Chat, *, narrow: bool = False) -> FirstLook:
    """Look at an engine that holds no talk; it is empty afterwards. Takes some 130 tokens' time.

    Raises TextError for a template that refuses a plain question.
    """
    encode = chat.tokenizer.encode
    begin = chat.template.render([{"role": "user", "content": TEXT}], add_generation_prompt=False).partition(TEXT)[0]
    head = chat.template.render([{"role": "user", "content": QUESTION}])
    asked, stops = encode(head), chat.tokenizer.stops()
    try:  # the paragraph stands in a turn, behind the marks that the model was taught with
        text_bits = _bits(llm, encode(begin), encode(TEXT)) / len(TEXT)
        answer_bits = _bits(llm, asked, encode(ANSWER)) / len(ANSWER)
        end_chance = sum(map(llm.probability, stops))
        llm.reset()
        llm.append(asked)
        reply = llm.decode(min(LONGEST_REPLY, llm.max_positions - llm.position - 1), Sampling.greedy(), stops)
    finally:
        llm.reset()
    ended = bool(reply) and reply[-1] in stops
    said = chat.tokenizer.decode(reply[:-1] if ended else reply)
    return FirstLook(text_bits, answer_bits, end_chance, said, ended, head.rstrip().endswith("<think>"), narrow)


def _bits(llm: HybridLLM, begin: Sequence[int], ids: Sequence[int]) -> float:
    """The cost of `ids` behind `begin`."""
    llm.reset()
    llm.append(begin)
    bits = 0.0
    for token in ids:
        chance = llm.probability(token)
        bits -= log2(chance if chance > _LEAST else _LEAST)
        llm.follow([token])
    return bits
