"""A spoken transcript as it would be written: numbers and names together, and settled after one pass."""

from hypothesis import given
from hypothesis import strategies as st

from assistant.text.written import as_written


@given(st.text(max_size=60))
def test_any_text_passes_and_settles(text: str) -> None:
    once = as_written(text)
    assert as_written(once) == once or any(character.isdigit() for character in text)


def test_numbers_and_names_together() -> None:
    assert as_written("remind me to call anna at half past five") == "remind me to call Anna at 5:30"
