"""Written text to speech text, case by case and against whatever a model or a user may write."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts_engine.markup import CONTROL_TAGS
from tts_engine.reading.words import cardinal, ordinal, year
from tts_engine.text import speech_text

CASES = {
    # numbers
    "1,234,567 people": "one million two hundred and thirty-four thousand five hundred and sixty-seven people",
    "-5.25 and 007": "minus five point two five and zero zero seven",
    "3.14159": "three point one four one five nine",
    "1st, 2nd, 21st, 100th": "first, second, twenty-first, one hundredth",
    "3/4 of 10%": "three quarters of ten percent",
    "10/2": "ten divided by two",
    "2 x 3 = 6, 7 - 2": "two times three equals six, seven minus two",
    "pages 10-15": "pages ten to fifteen",
    "I have 2. 3 remain.": "I have two. three remain.",
    "v1.2.3": "v one point two point three",
    "100000000000000000000": "one " + " ".join(["zero"] * 20),
    # dates and times
    "On 3 May 2024": "On the third of May twenty twenty-four",
    "the 21st of June, 1984": "the twenty-first of June nineteen eighty-four",
    "May 5th, 2020": "May fifth twenty twenty",
    "Dec 25": "December twenty-fifth",
    "2024-05-03": "May third twenty twenty-four",
    "the 1990s, in 2005, since 1900": "the nineteen nineties, in two thousand and five, since nineteen hundred",
    "at 9:05": "at nine oh five",
    "10:30 PM or 5pm": "ten thirty p m or five p m",
    "17:00, 7:00": "seventeen hundred, seven o'clock",
    # money
    "$3.50": "three dollars and fifty cents",
    "£1,000.01": "one thousand pounds and one penny",
    "$0.99 or $1": "ninety-nine cents or one dollar",
    "€2.5 million, 20€": "two point five million euros, twenty euros",
    # units
    "22°C, 5 km, 1 kg": "twenty-two degrees Celsius, five kilometres, one kilogram",
    "1.5 GB at 60 km/h": "one point five gigabytes at sixty kilometres per hour",
    "6'2\" tall": "six foot two tall",
    "+1 555 123 4567": "plus one, five five five, one two three, four five six seven",
    # words
    "Dr. Smith, e.g. the NASA HTTP API": "Doctor Smith, for example the NASA H T T P A P I",
    "A/B test & more": "A or B test and more",
    "COVID-19": "COVID nineteen",
    # addresses
    "See https://www.example.com/a?b=1.": "See example dot com.",
    "bob_x@foo-bar.org": "bob underscore x at foo dash bar dot org",
    # markup
    "**Bold** and *it* `code` [link](http://x.y/z)": "Bold and it code link",
    "# Title\n- one\n- two\n1. first": "Title. one. two. one: first.",
    "```python\nx=1\n```\nDone 😀🎉!": "Done!",
    "| a | b |\n|---|---|\n| 1 | 2 |": "a, b, one, two",
    "<b>bold</b> <!-- no -->text": "bold text",
    "Fact[1] and ![img](a.png)": "Fact and",
    # sentence ends that are also an abbreviation's
    "It is 3:45 pm.": "It is three forty-five p m.",
    "It is 3:45 p.m. Come in.": "It is three forty-five p m. Come in.",
    "At 5 p.m. we leave, at 6 a.m.": "At five p m we leave, at six a m.",
    "Apples, etc.": "Apples, et cetera.",
    "No. Is it No. 5 Main St. or St. Paul?": "No. Is it number five Main Street or Saint Paul?",
    # sums
    "12 * 8 and 2*3*4": "twelve times eight and two times three times four",
    "2**10 = 2^10 = 1e3": "two to the power of ten equals two to the power of ten equals one times ten to the power of "
    "three",
    "(a + b) * c != 0": "(a plus b) times c is not equal to zero",
    "a <= b -> c": "a at most b to c",
    "144 / 12, 10²": "one hundred and forty-four divided by twelve, ten squared",
    "2 1/2 cups, 2½ cups, 24/7": "two and a half cups, two and a half cups, twenty-four seven",
    "ratio 16:9": "ratio sixteen to nine",
    # ranges
    "10–15 kg, 5-10%": "ten to fifteen kilograms, five to ten percent",
    "1939-1945": "nineteen thirty-nine to nineteen forty-five",
    "10:30-11:45, 9-5pm": "ten thirty to eleven forty-five, nine to five p m",
    "May 3-5 or 3–5 May": "May third to fifth or the third to the fifth of May",
    "-5°C to 20–25 °C": "minus five degrees Celsius to twenty to twenty-five degrees Celsius",
    "72°F, 12.5 %": "seventy-two degrees Fahrenheit, twelve point five percent",
    # dates
    "12/25/2024, 25/12/2024, 3/4/2024": "December twenty-fifth twenty twenty-four, December twenty-fifth twenty "
    "twenty-four, three four twenty twenty-four",
    "the '80s, in her 30s, wait 30s, the 2000s": "the eighties, in her thirties, wait thirty seconds, the two "
    "thousands",
    # figures that are names
    "Call 911 or (555) 123-4567": "Call nine one one or five five five, one two three, four five six seven",
    "1-800-555-0199": "one, eight zero zero, five five five, zero one nine nine",
    "Python 3.12, v2.0": "Python three point twelve, v two point zero",
    "192.168.0.1": "one nine two dot one six eight dot zero dot one",
    "1080p, 4K, 1920x1080": "ten eighty p, four K, one thousand nine hundred and twenty by one thousand and eighty",
    "Chapter IV, World War II, Henry VIII": "Chapter four, World War two, Henry the eighth",
    "I, Claudius; Malcolm X; the part I like": "I, Claudius; Malcolm X; the part I like",
    "#1 in #music": "number one in hashtag music",
    # more money and units
    "-$5, $1.05, 50¢": "minus five dollars, one dollar and five cents, fifty cents",
    "$1.2M, $5k, 20 EUR": "one point two million dollars, five thousand dollars, twenty euros",
    "$5/month, 3 tokens/second": "five dollars per month, three tokens per second",
    "100 Mbps, 5000 mAh, 60 fps": "one hundred megabits per second, five thousand milliamp hours, sixty frames per "
    "second",
    "5 in the box, 5 in.": "five in the box, five inches.",
    "6 ft, 2.5 lbs, 3 m²": "six feet, two point five pounds, three square metres",
    # code and files
    "Run `main.py` with `max_rows=3`": "Run main dot py with max rows equals three",
    "Open https://localhost:8080/x or a.b+c@d.co.uk": "Open localhost or a dot b plus c at d dot co dot uk",
    # nothing
    "": "",
    "😀": "",
    "... !!": "",
    "```\ncode only\n```": "",
    # control tags stay where they are
    "<|sfx:laughter|>Haha 3": "<|sfx:laughter|>Haha three",
}


@pytest.mark.parametrize(("written", "said"), CASES.items(), ids=range(len(CASES)))
def test_said_as_people_say_it(written: str, said: str) -> None:
    assert speech_text(written) == said


def test_number_words() -> None:
    assert [cardinal(n) for n in (0, -7, 110, 10**15)] == [
        "zero", "minus seven", "one hundred and ten", "one" + " zero" * 15,
    ]  # fmt: skip
    assert [ordinal(n) for n in (1, 12, 23)] == ["first", "twelfth", "twenty-third"]
    assert [year(n) for n in (1066, 1900, 1905, 1984, 2000, 2024)] == [
        "one thousand and sixty-six", "nineteen hundred", "nineteen oh five", "nineteen eighty-four", "two thousand",
        "twenty twenty-four",
    ]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    st.text(alphabet=st.one_of(st.characters(), st.sampled_from("0123456789.,:/-$€%*_#`|<>[]()@ \n'\"°")), max_size=60)
)
def test_whatever_is_written_comes_out_sayable(text: str) -> None:
    said = speech_text(text)
    plain = said
    for tag in CONTROL_TAGS:
        plain = plain.replace(tag, "")
    plain = re.sub(r"<\|\w+:\w+\|>", "", plain)
    assert not re.search(r"[0-9*_`#|{}\[\]\\^~@$€£%°<>\n]", plain), (text, said)
    assert said == said.strip()


@pytest.mark.slow
def test_ten_thousand_characters_are_read_to_the_end() -> None:
    """A pattern that looks back over all that it has read would not come to an end here."""
    assert speech_text("word 12 " * 1250) == ("word twelve " * 1250).strip()
    assert speech_text("*" * 4_000 + "1" * 5_000 + "[" * 4_000).split() == ["one"] * 5_000
