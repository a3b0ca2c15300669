"""Sentences an assistant says, generated from templates and word lists: the teacher's in-domain text.

Everything is spelled out (no digits), because the speech models learn from words. `reply(rng)` gives one sentence.
"""

# ruff: noqa: E501, SIM905 - word lists read best as running text

from __future__ import annotations

import random
import re

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
LETTERS = (
    "ay bee see dee ee ef gee aitch eye jay kay el em en oh pee cue are ess tee you vee double-you ex why zee"
).split()


def number(n: int) -> str:
    """0 … 999,999 in words, as Americans write them with `and`."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + ("" if n % 10 == 0 else " " + ONES[n % 10])
    if n < 1000:
        return ONES[n // 100] + " hundred" + ("" if n % 100 == 0 else " and " + number(n % 100))
    return number(n // 1000) + " thousand" + ("" if n % 1000 == 0 else " " + number(n % 1000))


def ordinal(n: int) -> str:
    """1 … 31 in words."""
    if n <= 20:
        return ORDINALS[n - 1]
    return "thirtieth" if n == 30 else f"{TENS[n // 10]} {ORDINALS[n % 10 - 1]}"


def clock_time(rng: random.Random) -> str:
    """A time of day as people say it."""
    hour, minute = number(rng.randint(1, 12)), rng.randint(1, 59)
    spoken = f"oh {number(minute)}" if minute < 10 else number(minute)
    return rng.choice(
        [
            f"{hour} o'clock",
            f"half past {hour}",
            f"quarter to {hour}",
            f"quarter past {hour}",
            f"{hour} {spoken}",
            f"{hour} {spoken}",
            f"{hour} {spoken} in the {rng.choice(WORDS['part'])}",
            f"{hour} {rng.choice(['a m', 'p m'])}",
            f"{number(rng.randint(2, 29))} minutes past {hour}",
        ]
    )


def any_number(rng: random.Random) -> str:
    """Numbers with small ones common, as in talk about timers and sums; sometimes with decimals."""
    n = rng.choice([rng.randint(0, 20), rng.randint(0, 99), rng.randint(20, 999), rng.randint(100, 20_000)])
    if rng.random() < 0.08:
        return f"{number(n % 100)} point {' '.join(ONES[rng.randint(0, 9)] for _ in range(rng.randint(1, 2)))}"
    return ("minus " if rng.random() < 0.03 else "") + number(n)


def _words(text: str) -> list[str]:
    return [w.strip() for w in re.split(r"[|\n]" if "|" in text else r"\s+", text) if w.strip()]


WORDS = {
    "city": _words(
        "Paris London Berlin Tokyo Madrid Rome Vienna Chicago Boston Sydney Toronto Dublin Oslo Lisbon Prague Cairo "
        "Mumbai Seattle Denver Helsinki Houston Dallas Moscow Athens Warsaw Geneva Miami Montreal Budapest Singapore"
    ),
    "name": _words(
        "Anna Peter Maria John Sarah David Emma Tom Lisa Mark Julia Daniel Laura Robert Sophie George Alice Henry Nina "
        "Oscar Ada Ben Charlie Diana Edward Fiona Grace Hannah Ian James Kate Leo Michael Nora Oliver Paul Rachel Sam "
        "Theo Victor Walter Zoe Martin Helen Frank Carol Steve Linda Kevin Amy"
    ),
    "day": _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "month": _words("January February March April May June July August September October November December"),
    "part": _words("morning afternoon evening night"),
    "adj": _words(
        "small quiet bright old new green blue red yellow warm cold gentle happy sad strong clever simple heavy light "
        "sweet fresh dark deep large narrow perfect strange useful careful early golden hungry lonely lucky noisy proud "
        "rapid silver tender thick thin wild young wise brave calm curious fancy honest huge jolly kind lazy loyal "
        "modern polite shiny silent smooth soft tiny good bad great long short quick slow little big tall ancient busy "
        "cheerful dusty empty famous foolish grumpy magic patient purple rusty sleepy tired tricky white yellow"
    ),
    "noun": _words(
        "house garden river mountain teacher doctor window kitchen table paper letter picture music story question "
        "answer morning evening winter summer ocean island forest village market bridge castle engine train bicycle "
        "airplane computer keyboard battery camera candle carpet chair church cloud coffee country cousin dragon eagle "
        "farmer feather finger flower friend giraffe guitar hammer horse jacket kettle ladder lemon lion machine mirror "
        "monkey needle orange painter pencil pepper pirate planet pocket potato prince puppy rabbit rainbow rocket "
        "sailor school shadow sister soldier spider squirrel storm student sugar teapot temple thunder ticket tiger "
        "tomato tower traveler turtle uncle umbrella valley violin whale wizard woman yard zebra child treasure robot "
        "princess knight queen king cat dog fox owl bear mouse boat lantern key map door path field lake star moon"
    ),
    "verb": _words(
        "found watched carried painted visited followed opened closed answered borrowed built chased cleaned copied "
        "counted crossed described drew dropped enjoyed explained fixed forgot guarded helped imagined joined kept "
        "learned lifted loved measured moved needed noticed offered packed played pushed reached remembered repaired "
        "saved searched shared showed studied taught thanked touched trusted used wanted warned washed wished wrote "
        "asked called met saw heard told took gave brought liked hid"
    ),
    "food": _words(
        "bread butter cheese rice chicken pasta soup salad apples bananas cherries chocolate milk tea honey eggs "
        "mushrooms onions carrots pancakes sugar tomatoes potatoes yogurt water juice cereal oranges soap flour"
    ),
    "prep": _words(
        "near|behind|under|above|beside|across from|next to|in front of|far away from|inside|outside|without|around"
    ),
    "thing": _words(
        "the alarm|the timer|the reminder|the lights|the volume|the music|your shopping list|the calendar|the note|"
        "that|the last thing|your list|the story"
    ),
    "unit": _words(
        "minutes|seconds|hours|days|weeks|degrees|percent|miles|kilometers|pounds|dollars|euros|grams|meters|people|"
        "pages|feet|inches|kilograms|liters|gallons|ounces|cups|centimeters|degrees Celsius|degrees Fahrenheit|yards"
    ),
    "time_unit": _words("minutes seconds hours"),
    "topic": _words(
        "the weather|history|science|music|cooking|sports|travel|mathematics|animals|the moon|dinosaurs|volcanoes|"
        "languages|computers|gardening|the news|politics|medicine|the stock market|movies|philosophy|that"
    ),
    "adv": _words(
        "slowly quickly quietly carefully suddenly finally usually always never often really today yesterday tomorrow "
        "again together gently happily politely"
    ),
    "task": _words(
        "call {name}|buy {food}|water the plants|take your medicine|go shopping|feed the cat|walk the dog|pay the bill|"
        "do your homework|go to bed|leave the house|meet {name}|send the letter|check the oven|book a table"
    ),
    "op": _words("plus|minus|times|divided by"),
}

TEMPLATES = _words(
    """
Hello, good {part}! How can I help you?|Good {part}, {name}.|Hi {name}, nice to hear from you again.|Hello there!|Hi!
It is {t}.|It is {t} in {city}.|The time is {t}.|It's {t} now.|Today is {day}, {month} {ord}.|Tomorrow will be {day}.
It is {day} today.|The date is {month} {ord}, {year}.|{day} is the {ord} of {month}.|There are {n} days until {month}.
Okay, {n} {time_unit}, starting now.|Your timer for {n} {time_unit} has started.|I set a timer for {n} {time_unit}.
Your timer is done.|Time is up!|There are {n} {time_unit} left on your timer.|I cancelled {thing}.|No timer is running.
Your alarm is set for {t} on {day}.|I will wake you at {t}.|Alarm set for {t} tomorrow.|You have an alarm at {t}.
I will remind you to {task} at {t}.|I will remind you to {task} on {day}.|Reminder: {task}.|You asked me to {task}.
I added {food} to your shopping list.|I added {food} and {food} to the list.|On your list are {food}, {food} and {food}.
Your list is empty.|I removed {food} from your list.|I wrote that down.|Your note says: {task}.|You have no notes yet.
{n} {op} {n} is {n}.|{n} {op} {n} is {n}.|{n} {op} {n} equals {n}.|That is {n}.|The answer is {n}.|That makes {n} {unit}.
{n} {unit} is {n} {unit}.|{n} {unit} is about {n} {unit}.|{n} percent of {n} is {n}.|The square root of {n} is {n}.
{count}.|Counting: {count}.|{count}, and so on.|The last number I said was {n}.|I had counted up to {n}.|I was at {n}.
You spell it {letters}.|{word} is spelled {letters}.|That is spelled {letters}.|The letters are {letters}.
I did not catch that. Could you say it again?|Sorry, I did not understand.|Could you repeat that, please?|Pardon me?
I am sorry, I do not know that.|I cannot do that.|That is beyond me. A larger model could tell you about {topic}.
I am only the small built in model, so I know little about {topic}.|With a larger model I could tell you about {topic}.
That question about {topic} is too hard for me.|I do not know about {topic}, but I can tell you a story instead.
I can set timers, tell the time, and do simple arithmetic.|I am a small assistant that runs on your own computer.
My name is {name}.|I am {name}. Nice to meet you.|Nothing you say leaves this machine.|I do not need the internet.
Your name is {name}.|Nice to meet you, {name}.|You told me your name is {name}.|You have not told me your name.
I will remember that, {name}.|You said {word}.|You asked about {topic}.|You asked me about {topic} {n} {unit} ago.
Okay, I took that back.|Done. I undid {thing}.|Let us start over.|All right, we begin again.|You are now talking to {name}.
Would you like to hear more?|Shall I go on?|Shall I repeat that?|Do you want me to stop {thing}?|Where was I?
Once upon a time, a {adj} {noun} lived {prep} a {adj} {noun}.|Once there was a {adj} {noun} who loved {food}.
One {adj} {part}, {name} {verb} the {noun}.|The {noun} {verb} the {adj} {noun} {adv}.|There was a {adj} {noun} in {city}.
{name} and the {noun} {verb} a {noun} {prep} the {noun}.|The {adj} {noun} said, I have never seen such a {adj} {noun}.
And {adv} the {noun} {verb} every {noun} in the {noun}.|They shared {food} with {food} until the {part} was {adj}.
The {noun} was {adj}, but the {noun} was {adj}.|Why was the {noun} so {adj}? Because nobody {verb} it.|The end.
What a {adj} {noun} you have!|They lived happily ever after.|At last they {verb} the {noun} and went home.
Would you like to hear about {topic}?|Let us talk about {topic} for {n} {unit}.|That is a {adj} idea, {name}.
I think {topic} and {topic} are both {adj}.|You are welcome.|Goodbye, see you on {day}.|Have a {adj} {part}!|Good night.
Of course, {name}. Here is a story about a {noun} and a {noun}.|The {ord} {noun} is {adj}, the {ord} is {adj}.
The next train to {city} leaves at {t}.|{city} is about {n} kilometers from {city}.|In {month} it is {adj} in {city}.
I can hear you clearly now.|The capital city is {city}.|Okay.|Sure.|Yes.|No.|All right.|Of course.|Thank you.|Gladly.
I am fine, thank you. How are you?|I feel {adj} today.|I am sorry to hear that.|That is good to hear, {name}.|Certainly.
"""
)


def fill(rng: random.Random, template: str) -> str:
    """Replace every {slot} with a random value of its kind; slots inside values are filled too."""

    def value(match: re.Match[str]) -> str:
        kind = match.group(1)
        if kind == "n":
            return any_number(rng)
        if kind == "t":
            return clock_time(rng)
        if kind == "ord":
            return ordinal(rng.randint(1, 31))
        if kind == "year":
            return rng.choice(
                ["twenty twenty " + ONES[rng.randint(1, 9)], "two thousand and " + ONES[rng.randint(1, 9)]]
            )
        if kind == "count":
            start, step = rng.choice([0, 1, 1, 1, rng.randint(0, 95)]), rng.choice([1, 1, 1, 2, 5, 10, -1])
            run = [start + step * i for i in range(rng.randint(3, 10))]
            return ", ".join(number(n) for n in run if n >= 0)
        if kind == "letters":
            return ", ".join(rng.choice(LETTERS) for _ in range(rng.randint(3, 8)))
        if kind == "word":
            return rng.choice(WORDS[rng.choice(["noun", "adj", "food", "verb"])])
        return rng.choice(WORDS[kind])

    while "{" in template:
        template = re.sub(r"\{(\w+)\}", value, template)
    return template


def reply(rng: random.Random) -> str:
    """One sentence, or sometimes two, in the assistant's style."""
    text = fill(rng, rng.choice(TEMPLATES))
    if rng.random() < 0.15:
        text = text[0].upper() + text[1:] + " " + fill(rng, rng.choice(TEMPLATES))
    return text[0].upper() + text[1:]
