"""Words to fill slots with, and the rule that reserves a tenth of all values and phrasings for scoring."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

import hashlib
import random
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final, Literal

import pocketsphinx
from tokenizers import Tokenizer

from assistant.text.names import GIVEN, PLACES

Split = Literal["train", "test"]

_words = str.split


def _phrases(text: str) -> list[str]:
    return [" ".join(phrase.split()) for phrase in text.split(",") if phrase.strip()]


@cache
def held_out(text: str) -> bool:
    """Whether a phrasing or value is never trained on. Decided by its hash alone, so no list can be tuned."""
    return hashlib.sha256(text.lower().encode()).digest()[0] % 10 == 0


@cache
def allowed(kind: str, split: Split) -> tuple[str, ...]:
    """The values of a kind that a split may use. Closed kinds (days, units) are the same in both."""
    values = WORDS[kind]
    if kind in CLOSED:
        return tuple(values)
    kept = tuple(value for value in values if held_out(value) == (split == "test"))
    return kept or tuple(values)


@cache
def dictionary(split: Split) -> tuple[str, ...]:
    """English words of 3 to 9 letters from the CMU pronouncing dictionary that comes with pocketsphinx (BSD)."""
    path = pocketsphinx.get_model_path("en-us/cmudict-en-us.dict")
    with open(path, encoding="utf-8") as lines:  # noqa: PTH123
        words = {line.split(" ", 1)[0] for line in lines}
    kept = sorted(w for w in words if re.fullmatch(r"[a-z]{3,9}", w))
    return tuple(w for w in kept if held_out(w) == (split == "test"))


_ONSETS: Final = _words("b br c ch cl d dr f fl g gl gr h j k kr l m n p pl pr qu r s sh sk sl st t th tr v w y z")
_VOWELS: Final = _words("a e i o u a e i o ai ee oo ou ia")
_CODAS: Final = ("", "", "", *_words("b ck d g l ll m n nd ng nt p r rk rn s sk st t th v x z"))


def _syllable(rng: random.Random) -> str:
    return rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)


def made_up(rng: random.Random, split: Split) -> str:
    """A made-up word of two or three syllables that can be spoken."""
    while True:
        word = "".join(_syllable(rng) for _ in range(rng.choice([2, 2, 3])))
        if 4 <= len(word) <= 11 and held_out(word) == (split == "test"):
            return word


FEW: Final = 8
"""If the dictionary has fewer words with a token than this, made-up ones are used."""


@cache
def by_token(split: Split) -> tuple[tuple[str, ...], ...]:
    """Lower-case words grouped by the shipped model's tokens, one row a token.

    Half of the dictionary consists of family names, so an even draw gives few words with `base` or `mount`; a token
    that is hardly ever practised cannot be copied when somebody says it.
    """
    tokenizer = Tokenizer.from_file(str(Path(__file__).parents[2] / "llm_engine" / "tiny" / "tokenizer.json"))
    rng, words = random.Random(f"by token {split}"), [*dictionary(split)]
    rows: dict[int, list[str]] = defaultdict(list)
    for word, read in zip(words, tokenizer.encode_batch([f" {word}" for word in words]), strict=True):
        for token in set(read.ids):
            rows[token].append(word)
    for token in range(tokenizer.get_vocab_size()):
        text = tokenizer.decode([token])
        if not re.fullmatch(" ?[a-z]{2,}", text):
            continue
        for _ in range(FEW - len(rows[token])):
            word = text.strip() + _syllable(rng) if text.startswith(" ") else _syllable(rng) + text
            if held_out(word) == (split == "test") and token in tokenizer.encode(f" {word}").ids:
                rows[token].append(word)
    return tuple(tuple(rows[token]) for token in sorted(rows) if rows[token])


_ONES: Final = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS: Final = _words("- - twenty thirty forty fifty sixty seventy eighty ninety")
ORDINALS: Final = _words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)


def spoken_number(n: int, joiner: str = " and ") -> str:
    """0 … 999,999 in words; `joiner` stands after hundreds (`" "` for the shorter American way)."""
    if n < 0:
        return "minus " + spoken_number(-n, joiner)
    if n < 20:
        return _ONES[n]
    if n < 100:
        return _TENS[n // 10] + (" " + _ONES[n % 10] if n % 10 else "")
    if n < 1000:
        return _ONES[n // 100] + " hundred" + (joiner + spoken_number(n % 100) if n % 100 else "")
    rest = n % 1000
    link = joiner if 0 < rest < 100 else " "
    return spoken_number(n // 1000, joiner) + " thousand" + (link + spoken_number(rest, joiner) if rest else "")


def spoken_ordinal(n: int) -> str:
    """1 … 31 in words."""
    if n <= 20:
        return ORDINALS[n - 1]
    return "thirtieth" if n == 30 else f"{_TENS[n // 10]} {ORDINALS[n % 10 - 1]}"


def whole(rng: random.Random, split: Split, low: int, high: int) -> int:
    """A whole number; those above 12 are split between training and scoring."""
    for _ in range(200):
        n = rng.randint(low, high)
        if n <= 12 or held_out(f"#{n}") == (split == "test"):
            return n
    return low


CLOSED: Final = frozenset(
    _words("day month part unit_time feast relative friend hero goal place obstacle adj favorite pet language")
)
"""Kinds that are not split: either all their values matter or only the reply holds them."""

WORDS: Final[dict[str, list[str]]] = {
    "name": list(GIVEN),
    "city": [p for p in PLACES if p not in ("Africa", "America", "Asia", "Europe", "Antarctica", "Hollywood")],
    "day": _words("monday tuesday wednesday thursday friday saturday sunday"),
    "month": _words(
        "january february march april may june july august september october november december"
    ),
    "part": _words("morning afternoon evening night"),
    "unit_time": _words("seconds minutes minutes minutes hours"),
    "feast": _phrases(
        "christmas, christmas eve, new year, new year's eve, halloween, valentine's day, the weekend, easter, thanksgiving, "
        "mother's day, father's day"
    ),
    "relative": _words("mother father sister brother wife husband son daughter boss neighbor friend dog cat"),
    "item": _phrases(
        """
        milk, eggs, bread, butter, cheese, rice, chicken, pasta, soup, salad, apples, bananas, cherries, chocolate, tea,
        honey, mushrooms, onions, carrots, pancakes, sugar, tomatoes, potatoes, yogurt, water, juice, cereal, oranges,
        soap, flour, salt, pepper, garlic, ginger, lemons, limes, grapes, pears, peaches, plums, strawberries, melons,
        lettuce, spinach, cabbage, broccoli, cucumbers, peppers, beans, peas, corn, lentils, noodles, ham, bacon,
        sausages, beef, fish, salmon, tuna, shrimp, tofu, cream, ice cream, cookies, crackers, chips, nuts, almonds,
        peanuts, raisins, jam, peanut butter, olive oil, vinegar, mustard, ketchup, coffee, beer, wine, soda, candles,
        batteries, napkins, towels, toothpaste, shampoo, paper towels, toilet paper, light bulbs, trash bags, dish soap,
        cat food, dog food, stamps, envelopes, pencils, notebooks, tape, glue, flowers, sponges, matches, foil, diapers,
        vitamins, aspirin, bandages, sunscreen, tissues, detergent, oatmeal, waffles, muffins, bagels, croissants,
        avocados, zucchini, celery, radishes, turkey, lamb, oats, cinnamon, vanilla, basil, parsley, cocoa, popcorn
        """
    ),
    "list": _phrases(
        """
        to do, packing, guest, reading, birthday, hardware, school, garden, party, work, movie, gift, camping, chores,
        wish, bucket, book, music, song, game, play, project, office, job, home, house, kitchen, bathroom, moving,
        cleaning, repair, tool, craft, sewing, baking, dinner, menu, recipe, breakfast, snack, picnic, market, bakery,
        butcher, pharmacy, medicine, vitamin, pet, dog, cat, baby, kids, family, mother, holiday, vacation, travel,
        beach, hiking, ski, weekend, monday, today, morning, goal, idea, question, reminder, contact, call, mail,
        invitation, wedding, christmas, guest room, car, bike, boat, computer, phone, paint, plant, seed, study,
        homework, exam, class, team, training, gym, sport, show, film, watch, visit, thank you, budget, bill, cash
        """
    ),
    "label": _phrases(
        """
        pasta, eggs, pizza, tea, laundry, oven, rice, cake, chicken, bread, workout, nap, homework, cookies, soup,
        meeting, steak, potatoes, parking, reading, coffee, piano, break, dishwasher, garden, yoga, roast, fish, bath
        """
    ),
    "task": _phrases(
        """
        water the plants, take my medicine, go shopping, feed the cat, feed the dog, walk the dog, pay the bill,
        pay the rent, do my homework, go to bed, leave the house, send the letter, check the oven, book a table,
        buy flowers, buy milk, take out the trash, clean the kitchen, charge my phone, wash the car, call the dentist,
        call the doctor, call my mother, call my brother, pick up the kids, pick up the package, close the windows,
        lock the door, turn off the stove, renew my passport, buy a present, answer the email, print the tickets,
        return the books, iron my shirt, practice the piano, stretch my legs, drink some water, defrost the chicken,
        mow the lawn, back up my computer, change the sheets, empty the dishwasher, water the garden, order a taxi,
        pack my bag, buy stamps, sign the papers, check the mail, fix the bike, meet the neighbors, get a haircut
        """
    ),
    "note": _phrases(
        """
        the car is on level three, the key is under the mat, the meeting moved to friday, the garage code is four two
        seven, my shoe size is nine, the plumber comes on monday, the red folder is in the attic, the wifi name is
        sunflower, the spare key is with the neighbor, the concert starts at eight, the dog needs new food, the train
        leaves from platform six, the recipe needs two lemons, my locker is number eighteen, the tires need air, the
        package is at the post office, we parked near the blue door, the milk goes bad on tuesday, the printer is out
        of ink, the cat sleeps in the closet, grandma likes yellow roses, the paint color is ocean blue, the doctor is
        on holiday, the lamp in the hall is broken, the tickets are in the drawer, the window does not close, the gate
        opens at seven, the boss likes short reports, the suitcase is in the basement, the plants need water
        """
    ),
    "topic": _phrases(
        """
        volcanoes, black holes, the moon, dinosaurs, gravity, electricity, photosynthesis, the stock market, inflation,
        democracy, quantum physics, the roman empire, the french revolution, shakespeare, jazz, opera, chess, tennis,
        soccer, football, baseball, cricket, the weather, climate change, whales, bees, sharks, spiders, penguins,
        elephants, the ocean, the stars, the sun, mars, jupiter, comets, rockets, airplanes, engines, bridges, computers,
        the internet, programming, machine learning, robots, medicine, vaccines, the heart, the brain, sleep, dreams,
        vitamins, cooking, baking, coffee, wine, gardening, roses, trees, forests, deserts, mountains, rivers, glaciers,
        earthquakes, rainbows, lightning, snow, magnets, atoms, chemistry, biology, mathematics, geometry, calculus,
        philosophy, psychology, religion, politics, history, the middle ages, the pyramids, ancient greece, vikings,
        pirates, samurai, painting, sculpture, photography, movies, ballet, poetry, novels, grammar, languages, latin,
        taxes, mortgages, insurance, economics, trade, money, banks, bitcoin, elections, the law, human rights, education,
        tides, fossils, crystals, batteries, solar panels, nuclear power, steam engines, submarines, satellites
        """
    ),
    "code": _phrases(
        """
        door code, gate code, garage code, alarm code, entry code, access code, security code, area code, zip code, pin,
        pin code, bank pin, sim pin, safe combination, bike lock, lock combination, locker combination, phone number,
        room number, flight number, house number, extension, serial number, wifi password, member number, bus number,
        license plate, order number, account number, confirmation number, tracking number, apartment number, seat number
        """
    ),
    "object": _phrases(
        "the sky, the sea, grass, snow, blood, the sun, the moon, mars, ice, fire, gold, sand, the ocean, the desert"
    ),
    "quality": _words("blue green white red hot cold salty yellow wet heavy round dark bright"),
    "far": _phrases("the moon, the sun, mars, jupiter, the nearest star, the north pole, the equator"),
    "inventor": _phrases(
        "the telephone, the light bulb, the radio, the airplane, the bicycle, the computer, paper, the wheel, the piano, "
        "the camera, the microscope, the printing press, the zipper, the elevator, the steam engine, the umbrella"
    ),
    "language": _words("German French Spanish Italian Russian Chinese Japanese Latin English Portuguese Dutch Arabic Polish Korean"),
    "favorite": _phrases("color, food, animal, number, season, drink, book, song, flower, city, sport, movie, game"),
    "pet": _words("dog cat bird horse rabbit hamster turtle parrot goldfish pony"),
    "hero": _words(
        "dragon wizard princess knight robot cat dog bear fox king queen pirate ghost monkey mouse rabbit boy girl owl "
        "turtle whale giant witch prince sailor farmer lion tiger elephant penguin hedgehog frog bee snail wolf goat "
        "horse duck unicorn mermaid baker painter tailor"
    ),
    "friend": _words(
        "owl fox mouse bear turtle giant fairy sailor shepherd frog raven rabbit squirrel goat miller beaver swan"
    ),
    "adj": _words(
        "small brave shy clever lonely cheerful curious gentle old young proud sleepy kind lazy quiet hungry patient wise"
    ),
    "goal": _phrases(
        "a golden key, a singing stone, the silver lake, a lost crown, the warmest place in the world, a magic lantern, "
        "a talking tree, the last blue flower, a hidden garden, a star that had fallen, the sweetest honey, a true friend"
    ),
    "place": _phrases(
        "in a dark forest, near a quiet river, on a high mountain, in an old castle, by the sea, in a small village, "
        "under a hill, on a tiny island, in a green valley, behind the market, at the edge of the desert, in a tall tower"
    ),
    "obstacle": _phrases(
        "a wide river, a field of thorns, a sleeping dragon, a frozen lake, a long dark tunnel, a broken bridge, "
        "a storm, a wall without a door, a valley full of fog, a maze of hedges"
    ),
}  # fmt: skip
