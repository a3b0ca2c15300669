"""A reply that comes in pieces is read as the same reply that comes at once, and as Markdown's own parser reads it."""

from __future__ import annotations

import random
import re

import pytest
from markdown_it import MarkdownIt

from assistant.text.segment import SHOWN, Segmenter
from tts_engine.text import plain_text, say, speech_text

KINDS = (
    "Just a plain sentence, with a clause. ", "It is 22,1 °C or $3.50. ", "See `a_b(c, d)` and **bold text.** ",
    "*smiles warmly* Sure. ", "(laughs) [sighs] ", "At 5 p.m. Dr. Oak left 12 Oak Dr. ", "Say <|sfx:laughter|> ha. ",
    "[the guide](https://e.org/a_b) ", "$\\pi r^2$ or \\(x_1\\) ", "<b>tag</b> <br/> ", "![img](a.png) ", "1 234,56 € ",
    "<!-- a comment\nover lines --> ",
    "今日は。散歩に行きましょう。", "a" * 500 + " ", "🎉 ", "<", "- ", "**", "`", "\\", "|",
    "#", "> ", "1. ", "[", "](", "$", "~", "_", "*", "!", "\n", "\n\n", "\n    ", "\t", "  ", "word ", "10-15 ", "C++ ",
    "\n# Title\n", "\n- item one\n- [ ] item two\n", "\n1. first\n2) second\n", "\n```python\nx = 1\n\ny = 2\n```\n",
    "\n~~~\ncode\n~~~\n", "\n- a\n  ```\n  b\n  ```\n",
    "\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "\n|a|b|\n|-|-|\n|1|2|\n|3|4|\n",
    "\n> quoted *text*\n", "\n---\n", "\nTitle\n===\n", "\n[^1]: a note\n    more of it\n",
    "\n[id]: http://x.y\n",
    "\n$$\nE = mc^2\n$$\n", "\n\\[ x \\]\n", "\n<pre>\nx\n</pre>\n", "\n<script>\nx\n</script>\n",
    "\n```\nnever closed\n",
)  # fmt: skip


def pieces(text: str, cuts: list[int]) -> list[tuple[str, str]]:
    segmenter, made, last = Segmenter(), [], 0
    for cut in [*cuts, len(text)]:
        made += segmenter.feed(text[last:cut])
        last = cut
    made += segmenter.finish()
    assert "".join(piece.text for piece in made) == text[: made[-1].end if made else 0]
    assert not text[made[-1].end if made else 0 :].strip()
    assert all(piece.text == text[piece.start : piece.end] for piece in made)
    return [(piece.text, piece.said) for piece in made]


@pytest.mark.parametrize("seed", range(20))
def test_every_way_of_cutting_a_text_says_the_same(seed: int) -> None:
    """100 texts of all kinds for each seed; pieces are the same, so is what is said of them."""
    chance = random.Random(seed)
    for _ in range(100):
        text = "".join(chance.choice(KINDS) for _ in range(chance.randint(1, 14)))
        whole = pieces(text, [])
        cuts = sorted(chance.randint(0, len(text)) for _ in range(chance.randint(1, 30)))
        assert pieces(text, cuts) == whole, text
        assert pieces(text, list(range(len(text)))) == whole, text
        assert all(len(piece) < 900 for piece, _ in whole), text


WORDS = str.split("we read the quick guide then open a small red box and close it again before lunch")
INLINE = (
    "**{}**", "*{}*", "`{}`", "[{}](http://e.org/x)", "_{}_", "{}", "{}", "{}, {}", "<em>{}</em>", "~~{}~~", "{}&amp;",
)  # fmt: skip


def sentence(chance: random.Random) -> str:
    def some() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 4)))

    said = " ".join(chance.choice(INLINE).format(some(), some()) for _ in range(chance.randint(1, 4)))
    return f"Now {said}{chance.choice('.!?')}"


def block(chance: random.Random) -> str:
    line = sentence(chance)
    return chance.choice((
        line, f"{line} {sentence(chance)}", f"# {line}", f"> {line}", f"- {line}\n- {sentence(chance)}",
        f"1. {line}\n2. {sentence(chance)}", f"- {line}\n  - {sentence(chance)}", f"```py\n{line}\n\n{line}\n```",
        f"~~~\n{line}\n~~~", "---", f"| {line} | b |\n|---|---|\n| 1 | {line} |\n| c | d |", f"<!-- {line} -->",
        f"1. {line}\n   ```\n   {line}\n   ```", f"    {line}", f"<pre>\n{line}\n</pre>", f"[id]: http://e.org/{len(line)}",
    ))  # fmt: skip


def parsed(text: str) -> str:
    """The words of a one-shot parse: text and code within sentences; blocks for the eye are left out."""
    lines: list[str] = []
    in_table = False
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        in_table = (in_table or token.type == "table_open") and token.type != "table_close"
        if token.type == "list_item_open" and token.info:
            lines.append(token.info)
        if token.type == "inline" and not in_table:
            lines.append("".join(
                part.content if part.type in ("text", "code_inline", "text_special") else " " for part in token.children
                if part.type not in ("strong_open", "strong_close", "em_open", "em_close", "s_open", "s_close")
            ))  # fmt: skip
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(10))
def test_it_agrees_with_a_parse_of_the_whole(seed: int) -> None:
    """Blank lines part the blocks, so nothing has to be looked ahead for."""
    chance = random.Random(seed)
    for _ in range(40):
        text = "\n\n".join(["Begin.", *(block(chance) for _ in range(chance.randint(1, 6)))])
        expected = re.findall(r"\w+", parsed(text))
        assert re.findall(r"\w+", plain_text(text)) == expected, text
        joined = " ".join(said for _, said in pieces(text, []) if said not in SHOWN.values())
        assert re.findall(r"\w+", joined) == expected, text


def test_the_pieces_say_what_the_whole_says() -> None:
    text = "Add **2 cups** of flour, then wait. It takes 10-15 min.\n1. Stir *well*.\n2. Bake at 350F.\n"
    assert " ".join(say(said) for _, said in pieces(text, [])).replace(",", "") == speech_text(text).replace(",", "")
