"""Samples that were played to words that were heard."""

from hypothesis import given
from hypothesis import strategies as st

from assistant.contracts import Mark
from assistant.talk.heard import SpokenPiece, cut_pieces, heard


def piece(text, samples, marks=(), start=0, at=0, complete=True, name="p"):
    return SpokenPiece(name, text, start, start + len(text), at, samples, tuple(marks), complete)


def test_a_word_counts_when_more_than_half_of_it_was_played():
    one = piece("one two three", 30_000, [Mark(0, 0), Mark(10_000, 4), Mark(20_000, 8)])
    cases = {0: "", 5_000: "", 5_001: "one", 15_000: "one", 15_001: "one two", 29_999: "one two three"}
    for played, words in cases.items():
        assert one.text[: heard([one], played).chars] == words


def test_pieces_without_marks_share_time_by_characters():
    one = piece("aaaa bbbb", 9_000)
    assert heard([one], 4_000).chars == 4 and heard([one], 9_000).chars == 9


def test_later_pieces_were_not_heard_and_voice_memory_is_cut_too():
    pieces = [piece("Hello. ", 10_000, name="a"), piece("Bye.", 8_000, start=7, at=10_000, name="b")]
    cut = heard(pieces, 12_000)
    assert [(said.piece_id, said.samples) for said in cut.uttered] == [("a", 10_000), ("b", 2_000)]
    assert [one.samples for one in cut_pieces(pieces, cut)] == [10_000, 2_000]
    assert heard(cut_pieces(pieces, cut), 10**9).samples == 12_000
    assert heard(pieces, -5) == heard(pieces, 0)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.integers(0, 500_000), st.integers(0, 500_000))
def test_hearing_more_never_gives_fewer_words(lengths, one, two):
    text, marks, at = "", [], 0
    for length in lengths:
        marks.append(Mark(at, len(text)))
        text += "x" * length + " "
        at += length * 1_000
    spoken = piece(text, at, marks)
    few, many = sorted((one, two))
    assert heard([spoken], few).chars <= heard([spoken], many).chars <= len(text)
