"""Requests to the assistant, generated from templates: the text behind the language model of the hearing side.

Lower case, no punctuation, numbers in words, as in a transcript. `request(rng)` gives one utterance.
"""

# ruff: noqa: E501, SIM905 - word lists read best as running text

import random
import re

from recipes.sentences import WORDS, any_number, number, ordinal

SLOTS: dict[str, list[str]] = {
    "polite": ["", "", "", "please ", "could you ", "can you ", "would you ", "could you please ", "hey ", "i want you to "],
    "end": ["", "", "", "", " please", " now", " for me", " again", " then"],
    "name": [n.lower() for n in WORDS["name"]],
    "city": [c.lower() for c in WORDS["city"]] + ["new york", "san francisco", "hong kong", "los angeles"],
    "day": [d.lower() for d in WORDS["day"]],
    "month": [m.lower() for m in WORDS["month"]],
    "part": ["morning", "afternoon", "evening", "night"],
    "time_unit": ["seconds", "minutes", "hours", "second", "minute", "hour"],
    "span": ["seconds", "minutes", "hours", "days", "weeks", "months"],
    "unit": [
        *"miles kilometers meters feet inches yards centimeters millimeters pounds kilograms grams ounces tons liters".split(),
        *"gallons cups pints milliliters celsius fahrenheit seconds minutes hours days weeks teaspoons tablespoons".split(),
        *["degrees celsius", "degrees fahrenheit", "miles per hour", "kilometers per hour"],
        *"mile kilometer meter foot inch yard pound kilogram gram ounce liter gallon cup hour day week".split(),
    ],
    "food": (
        "milk eggs bread butter cheese apples bananas tea coffee rice pasta sugar tomatoes potatoes soap water onions "
        "chicken chocolate flowers flour oranges carrots yogurt cereal juice salt pepper fish beans lemons cookies honey "
        "salad batteries candles paper towels"
    ).split(),
    "who": (
        "dragon wizard princess knight robot cat dog bear fox king queen pirate ghost monkey mouse rabbit boy girl owl "
        "lion tiger horse fish turtle whale giant witch prince fairy sailor farmer teacher doctor frog wolf bird castle"
    ).split(),
    "topic": (
        "history|science|music|sports|mathematics|animals|dinosaurs|volcanoes|computers|cooking|space|the news|the moon|"
        "the sun|the ocean|the weather|gravity|electricity|bees|politics|philosophy|medicine|the stock market|movies|"
        "football|black holes|world war two|the economy|books|art|the universe|climate change|quantum physics"
    ).split("|"),
    "country": "france germany italy spain japan china england canada brazil india egypt norway sweden mexico australia russia".split(),
    "language": "german french spanish english italian chinese japanese russian".split(),
    "event": "christmas|easter|new year|my birthday|the weekend|summer|winter|halloween|friday|monday".split("|"),
    "feeling": "sad happy tired bored lonely hungry sick great good bad fine nervous angry excited okay stressed".split(),
    "op": ["plus", "minus", "times", "divided by", "multiplied by", "plus", "minus", "times"],
    "ordinal": [ordinal(n) for n in range(1, 32)],
    "word": [
        *"necessary rhythm beautiful receive tomorrow february separate restaurant library banana elephant because".split(),
        *"definitely neighbor science computer apple house garden friend school weather orange mountain language".split(),
        *"chocolate yellow purple knife queue island guitar kitchen wednesday mississippi bicycle umbrella water".split(),
        *"dragon wizard music station window believe different people important question answer hello world".split(),
    ],
    "task": (
        "call {person}|buy {food}|water the plants|take my medicine|go shopping|feed the cat|feed the dog|walk the dog|"
        "clean the kitchen|pay the bill|pay the rent|do my homework|go to bed|leave the house|meet {person}|send the letter|"
        "check the oven|book a table|take out the trash|wash the car|do the laundry|write to {person}|pick up {person}|"
        "go to the gym|drink some water|turn off the oven|charge my phone|go to the dentist|read a book|stretch"
    ).split("|"),
    "person": (
        "mom|dad|the doctor|my mother|my father|my brother|my sister|the dentist|the bank|the office|my friend|my wife|"
        "my husband|my boss|{name}|{name}|{name}"
    ).split("|"),
    "list": ["list", "shopping list", "to do list", "grocery list", "list", "shopping list"],
    "persona": ["someone else", "somebody else", "{name}", "ada", "ben", "another voice", "a different person"],
    "label": ["tea", "pasta", "egg", "pizza", "laundry", "workout", "kitchen", "homework", "coffee", "nap"],
}

TEMPLATES: dict[str, str] = {
    "time": (
        "what time is it{end}|what's the time|what is the time|tell me the time{end}|do you know what time it is|the time please|"
        "what time is it in {city}|what is the date|what's the date today|what is today's date|what day is it|"
        "what day is it today|what day is tomorrow|what is the date tomorrow|what day of the week is it|what month is it|"
        "what year is it|which day is it|what day is the {ordinal} of {month}|is it {day} today|how late is it|"
        "how many days until {event}|how many days are there until {event}|what was the date yesterday|what day was yesterday"
    ),
    "timer": (
        "{polite}set a timer for {n} {time_unit}{end}|{polite}set a timer for {n} {time_unit}|start a timer for {n} {time_unit}|"
        "timer {n} {time_unit}|{n} {time_unit} timer|{polite}set a {n} {time_unit} timer|{polite}cancel the timer|stop the timer|"
        "delete the timer|pause the timer|how much time is left|how long is left on the timer|how much time is left on the timer|"
        "add {n} minutes to the timer|set a {label} timer for {n} {time_unit}|{polite}set a timer for {n} {time_unit} for the {label}|"
        "start a {n} {time_unit} timer{end}|remind me in {n} {time_unit}|set a timer|set another timer for {n} {time_unit}|"
        "what timers are running|which timers do i have|is a timer running|cancel all timers|wake me in {n} {time_unit}|"
        "set a timer for {n} and a half {time_unit}|set a timer for half an hour|set a timer for an hour|set a timer for a minute|"
        "set a timer for {n} minutes and {n} seconds"
    ),
    "alarm": (
        "{polite}wake me up at {t}{when}|{polite}set an alarm for {t}{when}|set the alarm for {t}{when}|alarm at {t}|"
        "{polite}set an alarm for {t}|cancel my alarm|cancel the alarm|delete the alarm|turn off the alarm|when is my alarm|"
        "what alarms do i have|do i have an alarm|wake me at {t}|i need to get up at {t}{when}|set an alarm|list my alarms|"
        "cancel the {t} alarm|change my alarm to {t}"
    ),
    "remind": (
        "{polite}remind me to {task}{when}|{polite}remind me to {task} at {t}|remind me to {task} on {day} at {t}|"
        "remind me in {n} {span} to {task}|{polite}remind me to {task} in {n} {span}|what are my reminders|do i have any reminders|"
        "cancel the reminder|delete my reminders|remind me about {topic}{when}|set a reminder to {task}|what should i not forget|"
        "remind me to {task}|remind me at {t} to {task}"
    ),
    "sum": (
        "what is {n} {op} {n}|what's {n} {op} {n}|how much is {n} {op} {n}|calculate {n} {op} {n}|{n} {op} {n}|add {n} and {n}|"
        "subtract {n} from {n}|multiply {n} by {n}|divide {n} by {n}|what is the square root of {n}|what is {n} percent of {n}|"
        "what is half of {n}|what is {n} squared|and {op} {n}|what is {n} {op} {n} {op} {n}|what is the sum of {n} and {n}|"
        "how much is {n} percent of {n}|what is the result of {n} {op} {n}|now add {n}|now multiply that by {n}|divide that by {n}|"
        "times {n}|plus {n}|take away {n}|what's {n} percent of {n}|can you calculate {n} {op} {n}|double that|what is {n} point {d} {op} {n}"
    ),
    "convert": (
        "convert {n} {unit} to {unit}|convert {n} {unit} into {unit}|how many {unit} are in a {unit}|how many {unit} are {n} {unit}|"
        "what is {n} {unit} in {unit}|how much is {n} {unit} in {unit}|how many {unit} are in {n} {unit}|{n} {unit} in {unit}|"
        "{polite}convert {n} {unit} to {unit}|{n} {unit} to {unit}|how many {unit} is {n} {unit}|and in {unit}|and {n} {unit}"
    ),
    "list": (
        "{polite}add {food} to my {list}|add {food} and {food} to the {list}|add {food} to the {list}|put {food} on my {list}|"
        "put {food} and {food} on the {list}|add {food} {food} and {food} to my {list}|remove {food} from my {list}|"
        "take {food} off the {list}|delete {food} from the {list}|what's on my {list}|what is on the {list}|read my {list}|"
        "read me the {list}|clear the {list}|clear my {list}|empty the {list}|is {food} on my {list}|i need {food}|we need {food}|"
        "how many things are on my {list}|what do i need to buy|and {food}|also {food}|add {food}"
    ),
    "note": (
        "take a note|make a note|{polite}make a note that says {task}|write a note that says {task}|note that i have to {task}|"
        "take a note {task}|write down {task}|read my notes|what are my notes|do i have any notes|delete my notes|"
        "delete the last note|remember that i have to {task}|remember that my {thing} is {colour}|what is my {thing}|note to self {task}"
    ),
    "count": (
        "count to {n}|{polite}count to {n}{end}|count from {n} to {n}|count backwards from {n}|count down from {n}|count up to {n}|"
        "what was the last number you said|what was the last number|which number did you say last|what number did you stop at|"
        "where did you stop|what was the last thing you said|continue counting|keep counting|count on|go on counting|"
        "count to {n} slowly|count to {n} by {n}|count by twos|what comes after {n}|what number comes after {n}|count down"
    ),
    "spell": (
        "how do you spell {word}|spell {word}|{polite}spell {word}{end}|spell the word {word}|how is {word} spelled|"
        "spell my name|how do you spell {name}|can you spell {word}|what letters are in {word}|spell {word} backwards|"
        "what is the first letter of {word}|how many letters are in {word}|{letters}"
    ),
    "story": (
        "tell me a story|{polite}tell me a story about a {who}|tell me a short story about a {who} and a {who}|"
        "tell me a story about a {who} and a {who}|tell me another story|tell me another one|another one please|make it shorter|"
        "make it longer|make it funny|go on|continue|continue please|keep going|continue the story|what happened next|"
        "what happened then|what happened to the {who}|and then|how does it end|what did the {who} do|sing a song|"
        "read me a poem|i want to hear a story|tell me a joke|tell me another joke|a story please|tell a story|go on with the story|"
        "who was in the story|what was the story about|tell me the end of the story|start the story again|i like the {who}|"
        "tell me a bedtime story|tell me a story about a brave {who}|tell me more|tell me more about the {who}"
    ),
    "self": (
        "who are you|what are you|who made you|what can you do|what can you do for me|help|what is your name|what's your name|"
        "how old are you|where do you live|where are you from|are you a robot|are you a person|are you human|are you real|"
        "are you listening|can you hear me|do you have feelings|do you sleep|how do you work|are you online|"
        "do you need the internet|which model are you|what model are you|what runs on this machine|how big are you|"
        "do you send my data anywhere|is anyone listening|are my words private|where is my voice sent|what is your favorite color|"
        "do you like {topic}|what do you like|can you see me|do you remember me|do you remember our talk|can you learn|"
        "how do i get a larger model|how do i get a bigger model|what is a capsule|what could the larger model do|are you open source|"
        "are you smart|why are you so fast|can you speak {language}|do you speak {language}|what languages do you speak|"
        "tell me about yourself|introduce yourself|are you a man or a woman|whose voice is that|do you record me"
    ),
    "talk": (
        "hello|hi|hi there|hey|good {part}|hello how are you|how are you|how are you doing|how are you today|how was your day|"
        "nice to meet you|my name is {name}|i am {name}|i'm {name}|call me {name}|do you know my name|do you remember my name|"
        "what is my name|what's my name|who am i|what did i say|what did i just say|what did i ask you|what did you say|"
        "what did you just say|did you sleep well|goodbye|bye|bye bye|see you later|good night|see you tomorrow|thanks|thank you|"
        "thank you so much|thank you very much|thanks a lot|you are funny|well done|that's nice|i love you|i like you|that is great|"
        "great|perfect|cool|nice|interesting|i feel {feeling}|i feel {feeling} today|i feel a bit {feeling}|i am {feeling}|"
        "i'm {feeling}|i am very {feeling} today|i can't sleep|what should i do|what should i eat|what should i cook tonight|"
        "give me some advice|can you help me|i need help|i have a question|let's play a game|let's talk|let's talk about {topic}|"
        "what do you think about {topic}|you are welcome|sorry|excuse me|welcome back|i am back|my favorite color is {colour}|"
        "my dog is called {name}|my cat is called {name}|my sister is called {name}|what is my dog called|what is my favorite color|"
        "i live in {city}|where do i live|i am from {city}|i am {n} years old|how old am i|you are wrong|that is right|tell me something"
    ),
    "verbs": (
        "undo that|undo|undo the last thing|undo the last turn|take that back|forget that|forget what i said|forget the last thing i said|"
        "go back|go back one step|start over|let's start over|start again|begin again|start from the beginning|be {persona}|"
        "can you be {persona}|i want to talk to {persona}|let me talk to {persona}|switch to {persona}|change your voice|"
        "use another voice|talk like {persona}|new conversation|start a new conversation|delete everything|forget everything|"
        "scratch that|never mind that|that was a mistake|undo the last two things|please undo that|please start over"
    ),
    "stop": (
        "stop|stop it|stop please|stop talking|be quiet|be quiet please|quiet|enough|that's enough|that is enough|wait|"
        "wait a moment|hold on|one moment|listen|never mind|forget it|cancel|cancel that|not now|shut up|okay stop|"
        "please stop|stop that|stop now|pause|hang on|wait a second|no stop|sorry go on|go ahead|okay go on|please continue"
    ),
    "repair": (
        "yes|no|yes please|no thanks|no thank you|okay|sure|of course|maybe|i don't know|right|that's right|that is wrong|"
        "that's not right|that's wrong|that is not what i meant|that is not what i said|no i said {n}|no i meant {n}|"
        "i meant {n} {span}|no {n} not {n}|{n} not {n}|not {n} {span} {n} {span}|i asked something else|i did not ask that|"
        "can you repeat that|repeat that|repeat that please|say that again|say it again|say that again please|pardon|what|"
        "i did not understand|i didn't hear you|i didn't catch that|what was that|could you say that again|can you say that again|"
        "speak slower|speak louder|speak more slowly|please speak slowly|yes do that|no don't do that|yeah|nope|yep|exactly|correct|"
        "i said {n}|i said {word}|i mean {day}|no on {day}|make it {n}|make it {n} {time_unit}|i meant {t}|not {t} but {t}"
    ),
    "beyond": (
        "what is the weather|what is the weather like in {city}|how is the weather in {city}|will it rain {when2}|"
        "is it going to rain {when2}|what's the weather {when2}|do i need an umbrella|what is the capital of {country}|where is {country}|"
        "how big is {country}|how many people live in {country}|how far is it to {city}|how far is the moon|why is the sky blue|"
        "what is {topic}|explain {topic}|explain {topic} to me|tell me about {topic}|tell me something about {topic}|who was the first president|"
        "how does {topic} work|translate {word} into {language}|how do you say {word} in {language}|what does {word} mean|"
        "play some music|play a song|next song|turn on the lights|turn off the lights|turn on the kitchen light|turn up the volume|"
        "turn down the volume|make it louder|make it quieter|what is in the news|read me the news|call {person}|send a message to {person}|"
        "write an email to {person}|book a flight to {city}|order a pizza|find a restaurant|how much does it cost|who won the game|"
        "what is the meaning of life|write a program|write me a poem about {topic}|what should i wear|buy me {food}|"
        "who is the president of {country}|when was {name} born|what is the population of {city}|recommend a movie"
    ),
}
SHARES = {
    "time": 9, "timer": 14, "alarm": 8, "remind": 7, "sum": 15, "convert": 7, "list": 8, "note": 4, "count": 7, "spell": 5,
    "story": 10, "self": 9, "talk": 12, "verbs": 6, "stop": 6, "repair": 7, "beyond": 9,
}  # fmt: skip


def clock_words(rng: random.Random) -> str:
    """A time of day in an utterance."""
    hour = number(rng.randint(1, 12))
    minute = number(rng.choice([5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, rng.randint(10, 59)]))
    return rng.choice(
        [
            hour,
            f"{hour} o'clock",
            f"half past {hour}",
            f"quarter to {hour}",
            f"quarter past {hour}",
            f"{rng.choice(['ten', 'five', 'twenty'])} {rng.choice(['to', 'past'])} {hour}",
            f"{hour} thirty",
            f"{hour} {minute}",
            f"{hour} {minute}",
            f"{hour} a m",
            f"{hour} p m",
            f"{hour} {minute} {rng.choice(['a', 'p'])} m",
            rng.choice(["noon", "midnight"]),
        ]
    )


def _value(rng: random.Random, kind: str) -> str:
    if kind == "n":
        if rng.random() < 0.1:
            return any_number(rng).replace("minus ", "")
        return number(
            rng.choice([rng.randint(0, 20), rng.randint(1, 12) * 5, rng.randint(0, 99), rng.randint(20, 99), rng.randint(100, 999)])
        )
    if kind == "d":
        return number(rng.randint(0, 9))
    if kind == "t":
        return clock_words(rng)
    if kind == "when":
        day, part = rng.choice(SLOTS["day"]), rng.choice(SLOTS["part"])
        return rng.choice(["", "", " tomorrow", " tomorrow morning", f" on {day}", f" in the {part}", " today", " tonight"])
    if kind == "when2":
        return rng.choice(["today", "tomorrow", "tonight", "this afternoon", "on " + rng.choice(SLOTS["day"]), "now"])
    if kind == "letters":
        return " ".join(chr(97 + rng.randrange(26)) for _ in range(rng.randint(2, 5)))
    if kind == "thing":
        return rng.choice(["car", "bike", "favorite food", "door code", "house", "hat"])
    if kind == "colour":
        return rng.choice("red green blue yellow black white orange purple brown pink gray".split())
    return rng.choice(SLOTS[kind])


def request(rng: random.Random, kind: str | None = None) -> str:
    """One utterance, of the given kind or of a kind drawn by its share."""
    kind = kind or rng.choices(list(SHARES), list(SHARES.values()))[0]
    text = rng.choice(TEMPLATES[kind].split("|"))
    while "{" in text:
        text = re.sub(r"\{(\w+)\}", lambda match: _value(rng, match.group(1)), text)
    if rng.random() < 0.06:
        text = rng.choice(["okay ", "hey ", "well ", "um ", "so ", "and ", "please ", "no "]) + text
    return re.sub(r"\s+", " ", text.replace("-", " ")).strip()


