"""Scenes in which a turn was misheard, and the user says what they meant."""

from __future__ import annotations

from assistant.tools import answers
from recipes.texts.scene import Scene, Unusable, spoken_list, written_list
from recipes.texts.scenes_tools import calculated
from recipes.texts.slots import items, said_sum, said_time, shown, spoken_sum, time_of_day


def repair(s: Scene) -> None:
    """A request as it was misheard, then as it was meant. No tool deletes reminders and notes."""
    s.rng.choice([alarm, thing, thing, which_list, which_list, a_sum, name, word])(s)


def alarm(s: Scene) -> None:
    heard = time_of_day(s)
    wrong = s.ask("alarm", time=heard)["time"]
    s.call("set_alarm", set_for := said_time(s, wrong), time=wrong)
    s.say(f"Your alarm is set for {set_for}.", kind="reply set_alarm")
    right = s.ask("repair", right=time_of_day(s), wrong=heard)["right"]
    s.call("cancel_alarm", set_for, "follow-up call", time=set_for)
    s.call("set_alarm", said := said_time(s, right), "follow-up call", time=right)
    s.say(f"Your alarm is set for {said}.", kind="reply set_alarm")


def thing(s: Scene) -> None:
    wrong, right = items(s), items(s)
    if set(wrong) & set(right):
        raise Unusable(str(right))
    s.ask("list_add", items=spoken_list(wrong))
    s.call("list_add", written_list(wrong), items=written_list(wrong))
    s.say(f"I added {shown(wrong)} to your shopping list.", kind="reply list_add")
    s.ask("repair", right=spoken_list(right), wrong=spoken_list(wrong))
    s.call("list_remove", written_list(wrong), "follow-up call", items=written_list(wrong))
    s.call("list_add", written_list(right), "follow-up call", items=written_list(right))
    s.say(f"I added {shown(right)} to your shopping list.", kind="reply list_add")


def which_list(s: Scene) -> None:
    things = items(s)
    wrong, right = s.value("list"), s.value("list")
    if wrong == right:
        raise Unusable(wrong)
    to_shopping = s.chance(0.3)
    given = s.ask("list_add_named", items=spoken_list(things), list=wrong)["list"]
    s.call("list_add", written_list(things), items=written_list(things), list=given)
    s.say(f"I added {shown(things)} to your {given} list.", kind="reply list_add")
    meant = s.ask("repair", right=f"the {'shopping' if to_shopping else right} list", wrong=f"the {wrong} list")[
        "right"
    ]
    of_list = {} if to_shopping else {"list": meant.removeprefix("the ").removesuffix(" list")}
    s.call("list_remove", written_list(things), "follow-up call", items=written_list(things), list=given)
    s.call("list_add", written_list(things), "follow-up call", items=written_list(things), **of_list)
    s.say(f"I added {shown(things)} to your {of_list.get('list', 'shopping')} list.", kind="reply list_add")


def a_sum(s: Scene) -> None:
    heard = spoken_sum(s)
    expression = s.ask("sum", sum=heard)["sum"]
    calculated(s, expression, said_sum(expression))
    right = s.ask("repair", right=spoken_sum(s), wrong=heard)["right"]
    calculated(s, right, said_sum(right), "follow-up call")


def name(s: Scene) -> None:
    wrong = s.ask("name_tell", name=s.value("name"))["name"]
    s.say(f"Nice to meet you, {wrong}.", kind="name told")
    right = s.ask("repair", right=s.value("name"), wrong=wrong)["right"]
    s.known["name"] = f"Your name is {right}."
    s.say(f"Nice to meet you, {right}.", kind="name told")


def word(s: Scene) -> None:
    wrong = s.ask("spell", word=s.word())["word"]
    s.call("spell", letters := answers.spell(wrong), word=wrong)
    s.say(f"It is spelled {letters}.", kind="reply spell")
    right = s.ask("repair", right=s.word(), wrong=wrong)["right"]
    s.call("spell", letters := answers.spell(right), "follow-up call", word=right)
    s.say(f"It is spelled {letters}.", kind="reply spell")
