"""Characters that were said lead back to those that were written."""

from hypothesis import given
from hypothesis import strategies as st

from tts_engine.reading.alignment import aloud


def test_marks_on_spoken_words_lead_back_to_written_ones():
    words = {"5": "five", "pm": "p m", "$20": "twenty dollars"}
    said = aloud("See you at 5 pm with $20 then", lambda text: " ".join(words.get(w, w) for w in text.split()))
    written = "See you at 5 pm with $20 then"
    assert said.text == "See you at five p m with twenty dollars then"
    for spoken, expected in [("five", "5"), ("m with", "pm"), ("with", "with"), ("twenty", "$20"), ("then", "then")]:
        assert written[said.raw(said.text.index(spoken)) :].startswith(expected)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_rewriting_maps_into_the_text_and_forwards(written, spoken):
    said = aloud(written, lambda _: spoken)
    places = [said.raw(char) for char in range(len(said.text))]
    assert places == sorted(places) and all(0 <= place <= len(written) for place in places)
