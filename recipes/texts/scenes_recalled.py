"""Scenes that reach back: facts told, asked or counted some turns ago, lists changed by position."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from recipes.texts.scene import NOT_UNDERSTOOD, Scene, Unusable, written_list
from recipes.texts.scenes_talk import memory, recall, small_talk
from recipes.texts.scenes_time import clock, date
from recipes.texts.scenes_told import counting
from recipes.texts.scenes_tools import calculated, chance_games, conversion
from recipes.texts.slots import OPERATORS, digits, said_sum
from recipes.texts.stories import new_story, part
from recipes.texts.words import held_out

RECALL: Final = "recall"
EDIT: Final = "list edit"

_THINGS: Final = {
    "number": """
        locker seat room platform gate code shoe_size room_number house_number seat_number locker_number phone_number
        flight_number lucky_number desk floor apartment aisle lane track dock pier terminal cabin carriage ward shelf
        drawer pin extension height weight rank score budget rent salary mortgage mileage age_group ticket_number
        order_number case_number member_number account_number card_number bus_number train_number license_number
        serial_number zip_code area_code door_code gate_code bike_code safe_combination ring_size hat_size collar_size
        dress_size jacket_size glove_size waist_size heart_rate blood_pressure tram_line bus_line parking_spot mailbox
        tire_pressure channel frequency lap_record step_goal golf_handicap street_number table_number badge_number
    """,
    "day": """
        birthday meeting appointment exam interview surgery flight wedding graduation anniversary deadline vacation
        holiday party audition concert recital checkup haircut lesson trip shift payday name_day rehearsal tournament
        race booster_shot inspection hearing reunion moving_day day_off driving_test thesis_defense court_hearing
    """,
    "word": """
        team hobby password project car bike boat job phone band club company brand gym bank hotel restaurant cafe
        bakery salon nickname user_name network major degree instrument subject star_sign blood_type eye_color
        hair_color car_color motto ringtone perfume shampoo medicine allergy diet costume mascot tractor scooter
        motorcycle truck van guitar laptop tablet camera printer couch tent wallet suitcase dream_job first_job
        first_car dream_car favorite_team favorite_band favorite_dish favorite_cake favorite_toy favorite_planet
        favorite_tree favorite_word favorite_subject favorite_dessert favorite_store favorite_brand favorite_soup
        middle_name last_name maiden_name pen_name stage_name street_name boat_name team_name newspaper magazine
        lunch dinner breakfast snack costume_idea secret_word safe_word wifi_name wifi_password insurance pension
        sewing_machine bread_recipe science_project book_club choir orchestra church sports_club trade craft size
    """,
    "place": """
        office school hometown street house birthplace village county country workplace clinic dorm campus cottage
        bus_stop station airport district neighborhood college university daycare kindergarten hiding_place harbor
        vacation_spot meeting_point parking_lot hospital garage allotment summer_house dream_city home_airport
    """,
    "name": """
        doctor teacher boss landlord dentist sister brother mother father cousin uncle aunt neighbor wife husband son
        daughter cousin's_name sister's_name brother's_name mother's_name doctor's_name teacher's_name favorite_singer
        best_friend nephew niece grandmother grandfather grandma grandpa stepmother stepfather godmother godfather
        roommate flatmate partner girlfriend boyfriend coach trainer barber hairdresser plumber lawyer accountant
        mechanic gardener cleaner babysitter nanny vet priest pastor tutor professor principal manager secretary
        colleague client landlady tenant captain driver twin mentor therapist surgeon nurse electrician carpenter
        butcher baker florist tailor optician pharmacist mail_carrier guide teammate classmate lab_partner idol
        piano_teacher math_teacher favorite_writer favorite_actor favorite_painter favorite_player emergency_contact
        boss's_name wife's_name husband's_name son's_name daughter's_name neighbor's_name coach's_name twin's_name
        mother_in_law father_in_law sister_in_law brother_in_law pen_pal best_man bridesmaid godson goddaughter
    """,
}
THINGS: Final = {name.replace("_", " "): kind for kind, names in _THINGS.items() for name in names.split()}
"""Things that people have and may tell something about, and the sort of thing to tell."""


def thing(s: Scene) -> str:
    """Something of the user's; in training sometimes any word, so that no user's own word for one is strange."""
    if s.split == "train" and s.chance(0.25):
        return s.word()
    while True:
        name = s.rng.choice(list(THINGS))
        if held_out(name) == (s.split == "test"):
            return name


def of_thing(s: Scene, name: str) -> str:
    """A fact that may be told about it."""
    match THINGS.get(name) or s.rng.choice(list(_THINGS)):
        case "number":
            return s.number(s.whole(2, 999)) if s.chance(0.7) else digits(s)
        case "day":
            return s.rng.choice([f"on {s.value('day')}", "tomorrow", f"in {s.value('month')}", f"at {s.number(s.whole(1, 12))}"])
        case "word":
            return s.word() if s.chance(0.7) else f"{s.word()} {s.word()}"
        case "place":
            return s.value("city") if s.chance(0.5) else s.word()
    return s.value("name") if s.chance(0.6) else s.word()


def aside(s: Scene) -> None:
    """Something short in between."""
    s.rng.choice([clock, date, chance_games, small_talk, small_talk, conversion, _sum])(s)


def _sum(s: Scene) -> None:
    expression = s.ask("sum", sum=f"{s.number(s.whole(2, 99))} {s.rng.choice(list(OPERATORS))} {s.number(s.whole(2, 50))}")["sum"]
    calculated(s, expression, said_sum(expression))


def asides(s: Scene, most: int = 9) -> None:
    for _ in range(min(most, s.rng.choice([0, 0, 1, 1, 2, 3, 4, 6, 9]))):
        aside(s)


def recalled(s: Scene) -> None:
    """Told or asked, and asked for again after up to ten other turns."""
    s.rng.choice([_facts, _facts, _facts, _known, _known, _asked, _result, _count, _story])(s)


def _known(s: Scene) -> None:
    """The name, the home, the age, the pet or their favourite, told and asked for some turns later."""
    before = set(s.known)
    memory(s)
    asides(s)
    new = [what for what in s.known if what not in before and what not in ("thing", "kind")]
    if not new:
        raise Unusable("nothing was told")
    recall(s, new[0])
    s.turns[-1].kind = RECALL


def _facts(s: Scene) -> None:
    """One to three facts, then each in any order; sometimes one that was never told."""
    facts: dict[str, str] = {}
    for _ in range(s.rng.choice([1, 1, 2, 3])):
        name = thing(s)
        if name in facts or name in s.known:
            raise Unusable(name)
        value = of_thing(s, name)
        if s.chance(0.3):
            note = s.ask("note", note=f"my {name} is {value}")["note"]
            s.call("note_add", "noted", text=note)
            s.say("I wrote that down.", kind="reply note_add")
            value = note.removeprefix(f"my {name} is ")
        else:
            value = s.ask("told", thing=name, value=value)["value"]
            s.say("I will remember that.", kind="fact told")
        facts[name] = s.known[name] = f"Your {name} is {value}."
        asides(s, 3)
    asides(s)
    for name in s.rng.sample(list(facts), s.rng.randint(1, len(facts))):
        s.ask("told ask", thing=name)
        s.say(facts[name], kind=RECALL)
    if s.chance(0.4) and (other := thing(s)) not in s.known:
        s.ask("told ask", thing=other)
        s.say(f"You have not told me your {other}.", kind=RECALL)


def _asked(s: Scene) -> None:
    """A question about the turn before the last, or the very first."""
    while len([t for t in s.turns if t.role == "user"]) < 2:
        aside(s)
    asked = [turn.text for turn in s.turns if turn.role == "user"]
    first = s.chance(0.4) and len(asked) < 12
    text = asked[0] if first else asked[-2]
    if text == NOT_UNDERSTOOD:
        raise Unusable(text)
    s.ask("asked first" if first else "asked before")
    s.say(f"You said: {text.rstrip('.?!')}.", kind=RECALL)


def _result(s: Scene) -> None:
    _sum(s)
    said = s.turns[-1].text
    if " is " not in said:
        raise Unusable(said)
    for _ in range(s.rng.randint(0, 4)):
        s.rng.choice([clock, date, small_talk])(s)
    s.ask("result again")
    s.say(said, kind=RECALL)


def _count(s: Scene) -> None:
    """How far the count got, although other things came between."""
    counting(s)
    last = next((t for t in reversed(s.turns) if t.kind in ("count", "go on counting")), None)
    if last is None or not last.text[:1].isdigit():
        raise Unusable("nothing was counted")
    for _ in range(s.rng.randint(1, 4)):
        s.rng.choice([clock, date, small_talk, chance_games])(s)
    s.ask("last_number")
    s.say(f"The last number I said was {last.text.rstrip('.,').split(', ')[-1]}.", kind=RECALL)


def _story(s: Scene) -> None:
    tale = new_story(s.rng, s.value("hero") if s.chance(0.6) else s.word())
    s.ask("story_about", hero=tale.hero)
    s.say(" ".join(part(s.rng, tale, 0)), kind="story 1")
    s.turns[-1].accept = (tale.hero,)
    asides(s, 5)
    s.ask("story_what")
    s.say(*tale.about, kind=RECALL)


# ------------------------------------------------------------------------------------------------------- lists


def edited(s: Scene) -> None:
    """A list that is read, then changed by position, and read again."""
    name = s.value("list") if s.chance(0.35) else ""
    given = s.ask("list_read_named" if name else "list_read", list=name)
    of = {"list": given["list"]} if name else {}
    your = f"your {of.get('list', 'shopping')} list"
    things = list(dict.fromkeys(s.value("item") for _ in range(s.rng.randint(2, 6))))
    s.call("list_read", written_list(things), **of)
    s.say(f"On {your}: {written_list(things)}.", kind="reply list_read")
    gone = ""
    for _ in range(s.rng.choice([1, 2, 2, 3])):
        edit = s.rng.choice(_EDITS)
        if edit is _other and not gone:
            edit = _taken
        gone = edit(s, things, of, your, gone)
        if not things:
            return


def _taken(s: Scene, things: list[str], of: dict[str, str], your: str, _: str) -> str:
    at = s.rng.choice([-1, -1, 0, 1] if len(things) > 1 else [-1])
    s.ask({-1: "take last", 0: "take first", 1: "take second"}[at])
    gone = things.pop(at)
    s.call("list_remove", gone, EDIT, items=gone, **of)
    s.say(f"I removed {gone} from {your}.", kind="reply list_remove")
    return gone


def _other(s: Scene, things: list[str], of: dict[str, str], your: str, gone: str) -> str:
    """The wrong one was removed: it comes back, and the only other one goes."""
    if len(things) != 1:
        return _taken(s, things, of, your, gone)
    s.ask("take other")
    other = things.pop()
    s.call("list_add", gone, EDIT, items=gone, **of)
    s.call("list_remove", other, EDIT, items=other, **of)
    s.say(f"I removed {other} from {your}.", kind="reply list_remove")
    things.append(gone)
    return other


def _whole(s: Scene, things: list[str], of: dict[str, str], your: str, gone: str) -> str:
    s.ask("list whole")
    s.call("list_read", written_list(things), EDIT, **of)
    s.say(f"On {your}: {written_list(things)}.", kind="reply list_read")
    return gone


def _added(s: Scene, things: list[str], of: dict[str, str], your: str, gone: str) -> str:
    new = s.value("item")
    if new in things:
        return gone
    s.ask("list_add_next", items=new)
    s.call("list_add", new, EDIT, items=new, **of)
    s.say(f"I added {new} to {your}.", kind="reply list_add")
    things.append(new)
    return gone


def _swapped(s: Scene, things: list[str], of: dict[str, str], your: str, gone: str) -> str:
    old, new = s.rng.choice(things), s.value("item")
    if new in things:
        return gone
    s.ask("list swap", right=new, wrong=old)
    s.call("list_remove", old, EDIT, items=old, **of)
    s.call("list_add", new, EDIT, items=new, **of)
    s.say(f"I added {new} to {your}.", kind="reply list_add")
    things.remove(old)
    things.append(new)
    return old


def _which(s: Scene, things: list[str], of: dict[str, str], your: str, gone: str) -> str:
    """A question about the list just read: how many, the last, the first, whether something is on it."""
    what = s.rng.choice(["how many", "last", "first", "is on", "is on"])
    if what == "is on":
        there = s.chance(0.5)
        item = s.ask("list is on", item=s.rng.choice(things) if there else s.value("item"))["item"]
        s.say(f"Yes, {item} is on {your}." if item in things else f"No, {item} is not on {your}.", kind=EDIT)
        return gone
    s.ask(f"list {what}")
    if what == "how many":
        n = len(things)
        s.say(f"There {'is 1 thing' if n == 1 else f'are {n} things'} on {your}.", kind=EDIT)
    else:
        s.say(f"The {what} one is {things[-1 if what == 'last' else 0]}.", kind=EDIT)
    return gone


_EDITS: Final[tuple[Callable[[Scene, list[str], dict[str, str], str, str], str], ...]] = (
    _taken, _taken, _other, _whole, _whole, _added, _swapped, _which, _which,
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------- unknown


def unknown(s: Scene) -> None:
    """People, things and places that nobody told it about: it says so, naming them."""
    kind = s.rng.choice(["who", "what", "where"])
    named = s.value("name").lower() if s.chance(0.3) else s.word()
    name = {"who": f"{named} {s.word()}" if s.chance(0.6) else named, "what": s.words(s.rng.choice([1, 1, 2])), "where": s.word()}[kind]
    given = s.ask(f"unknown {kind}", x=name)["x"]
    s.say(f"I am too small to know about {given}. A larger model could tell you.", kind="refusal")
