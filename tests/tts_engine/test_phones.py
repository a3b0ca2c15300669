"""Text to phones: every word accounted for, pauses from punctuation, unknown words sounded out, nothing refused."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tts_engine
from tts_engine.errors import CheckpointRefused
from tts_engine.phones import PHONES, SPECIAL_TOKENS, PhoneEncoder, parse_tree

TINY = Path(tts_engine.__file__).parent / "tiny"
NAMES = {len(SPECIAL_TOKENS) + i: name for i, name in enumerate(PHONES)}


ENCODER = PhoneEncoder.load(TINY)


@pytest.fixture
def encoder():
    return ENCODER


def spelled(encoder, text):
    return " ".join(NAMES[i] for i in encoder.phones_of(text).ids)


def test_a_sentence_in_the_teachers_phones(encoder):
    assert spelled(encoder, "The very old apple.") == "sil dh ax # v eh1 r iy # ow1 l d # ae1 p ax l ."


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("Yes, no", "sil y eh1 s , n ow1 ,"),
        ("Is it? Yes!", "sil ih1 z # ih1 t ? y eh1 s !"),
        ("so ... (yes); yes:", "sil s ow1 . y eh1 s , y eh1 s ."),
        ("B", "sil b iy1 ,"),
        ("the FBI.", "sil dh ax # eh1 f b iy1 ay1 ."),
        ("a 7", "sil ax # s eh1 v ax n ,"),
        ("I don't.", "sil ay1 # d ow1 n t ."),
        ("café", "sil k ax f ey1 ,"),
    ],
)
def test_punctuation_letters_and_digits(encoder, text, phones):
    assert spelled(encoder, text) == phones


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("forty-four", "f ao1 r d iy # f ao1 r"),
        ("butter", "b ah1 d er"),
        ("city", "s ih1 d iy"),
        ("attack", "ax t ae1 k"),  # before the stress it stays a t
        ("winter", "w ih1 n t er"),
        ("guilty", "g ih1 l t iy"),
        ("eight", "ey1 t"),
        ("eighteen", "ey t iy1 n"),
        ("eighty", "ey1 d iy"),
    ],
)
def test_a_t_between_vowels_flaps_before_an_unstressed_one(encoder, word, phones):
    assert spelled(encoder, word) == f"sil {phones} ,"


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("five a m.", "f ay1 v # ey1 # eh1 m ."),
        ("A, B", "ey1 , b iy1 ,"),
        ("B, A.", "b iy1 , ey1 ."),
        ("plan A.", "p l ae1 n # ey1 ."),
        ("A man", "ax # m ae1 n ,"),
        ("Yes. A man", "y eh1 s . ax # m ae1 n ,"),
        ("it: A man", "ih1 t . ax # m ae1 n ,"),
        ("a B", "ax # b iy1 ,"),
    ],
)
def test_an_a_that_is_a_letter_has_its_name(encoder, text, phones):
    assert spelled(encoder, text) == f"sil {phones}"


@pytest.mark.parametrize(("word", "ending"), [("cat's", "t s"), ("dog's", "g z"), ("horse's", "s ax z")])
def test_possessives_sound_as_their_last_phone_wants(encoder, word, ending):
    assert " ".join(encoder.pronounce(word)).endswith(ending)


def test_an_unknown_word_is_sounded_out(encoder):
    assert "blickering" not in encoder.lexicon
    assert encoder.pronounce("blickering")[:3] == ["b", "l", "ih1"]


@pytest.mark.parametrize(
    ("word", "phones"), [("tv", "t iy1 v iy1"), ("dvds", "d iy1 v iy1 d iy1 eh1 s"), ("rhythm", "r ih1 dh ax m")]
)
def test_what_would_have_no_vowel_is_spelled(encoder, word, phones):
    assert " ".join(encoder.spoken(word)) == phones


@pytest.mark.parametrize("text", ["", "   ", "...!?", "—", "你好", "🙂"])
def test_nothing_to_say_gives_no_ids(encoder, text):
    assert encoder.phones_of(text).ids == () and encoder.phones_of(text).words == ()


@given(st.text(alphabet="abcXYZ '’.,?!-0123é好\n", max_size=60))
@settings(max_examples=150, deadline=None)
def test_words_partition_the_phones_whatever_the_text(text):
    made = ENCODER.phones_of(text)
    assert set(made.ids) <= set(NAMES)
    place = 1
    for start, end, first, stop in made.words:
        assert 0 <= start < end <= len(text) and any(c.isalnum() for c in text[start:end])
        assert first == place and stop > first
        place = stop + 1  # one pause or boundary between words
    assert place == len(made.ids) or not made.ids


def test_a_tree_is_read_in_prefix_order():
    letter, tree = parse_tree("c -1s -2# k s 1h _ k-s")
    assert letter == "c" and tree == (-1, "s", (-2, "#", "k", "s"), (1, "h", "_", "k-s"))


def test_a_missing_or_damaged_lexicon_is_refused(tmp_path):
    with pytest.raises(CheckpointRefused, match="lexicon"):
        PhoneEncoder.load(tmp_path)
    (tmp_path / "lexicon.txt.gz").write_bytes(b"no gzip")
    (tmp_path / "letters.txt.gz").write_bytes(b"")
    with pytest.raises(CheckpointRefused, match="lexicon"):
        PhoneEncoder.load(tmp_path)
