"""A reply cut into pieces: where people pause, tiling the text however it comes, none of them endless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.text.segment import HARD_LIMIT_CHARS, Segmenter


def pieces_of(text, cuts=()):
    segmenter, out, last = Segmenter(), [], 0
    for cut in [*cuts, len(text)]:
        out += segmenter.feed(text[last:cut])
        last = cut
    return out + segmenter.finish()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes. It is.", ["Yes. ", "It is."]),
        ("Pi is 3.14159, about. Fine.", ["Pi is 3.14159, ", "about. ", "Fine."]),
        ("Ask Dr. Who at 5 p.m. today. Bye.", ["Ask Dr. Who at 5 p.m. today. ", "Bye."]),
        ("It costs 1,000.50 dollars. Ok?", ["It costs 1,000.50 dollars. ", "Ok?"]),
        ("we met at 5 p.m. and left. so it was", ["we met at 5 p.m. and left. so it was"]),
        ("Say <|emotion:awe|> wow. Done.", ["Say <|emotion:awe|> wow. ", "Done."]),
        ("1. Milk\n2. Eggs\n", ["1. Milk\n", "2. Eggs\n"]),
        ("", []),
        ("  \n ", []),
    ],
)
def test_pieces_end_where_people_pause(text, expected):
    assert [piece.text for piece in pieces_of(text)] == expected


@given(st.text(alphabet="ab 12.,!?<|>\n:;", max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_pieces_tile_the_text_however_it_comes(text, cuts):
    cuts = sorted(min(cut, len(text)) for cut in cuts)
    whole, cut_up = pieces_of(text), pieces_of(text, cuts)
    assert whole == cut_up
    assert "".join(piece.text for piece in whole) == text[: whole[-1].end if whole else 0]
    assert not text[whole[-1].end if whole else 0 :].strip()
    for piece in whole:
        assert text[piece.start : piece.end] == piece.text


@pytest.mark.slow
@given(st.lists(st.sampled_from(["alpha", "3.5", "1,000", "12:30", "and", "so", "word."]), min_size=40, max_size=120))
def test_no_piece_is_endless_and_none_cuts_a_number(words):
    for piece in pieces_of(" ".join(words)):
        assert len(piece.text) <= 240
        assert all(word in words for word in piece.text.split())


def test_a_word_without_an_end_is_cut_at_the_limit():
    assert [len(piece.text) for piece in pieces_of("a" * 1000)] == [HARD_LIMIT_CHARS, HARD_LIMIT_CHARS, 200]


def test_what_is_said_leads_back_to_what_was_written():
    piece = pieces_of("See **the [big guide](http://x.y)** now.")[0]
    assert piece.said == "See the big guide now."
    assert [piece.text[piece.written(piece.said.index(word)) :].split()[0] for word in ("See", "the", "now")] == [
        "See", "**the", "now.",
    ]  # fmt: skip
