"""Talks with the built-in tools from lines made up by hand: corrections, chains, follow-ups, lists edited
by description, and remarks that ask for nothing.

The writers had seen no other text. A talk of `written_talks.txt` is a row of turns: `say`, which each of its
phrasings expresses, and then the one right `call`, or the kind of `chat`. `{slot}` stands for a value, `{result}` in a
call for the latest number. Whole talks are held out, by the hash of their names.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from assistant.llm.small.recall import KEPT
from assistant.text.names import capitals
from assistant.tools import answers
from recipes.texts.phrases import split_phrases
from recipes.texts.scene import Scene, Talk, Unusable
from recipes.texts.scenes_interrupted import now_and_then
from recipes.texts.scenes_recalled import aside
from recipes.texts.scenes_tools import calculated
from recipes.texts.scenes_written import sections, told_talk, tools_talk
from recipes.texts.slots import said_sum, said_time, shown, some_day, task, time_of_day, turned
from recipes.texts.words import Split, held_out

CHATS: Final = {
    "okay": ("Okay.",),
    "laugh": ("Okay.",),
    "told": (KEPT,),
    "thanks": ("You are welcome.", "You are welcome. Anything else?"),
    "sorry": ("I am sorry to hear that. I am here if you want to talk or hear a story.",),
}
_HOLE: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn with several phrasings, and the call that it means; for a remark, the kind of `chat`."""

    said: tuple[str, ...]
    tool: str = ""
    takes: tuple[tuple[str, str], ...] = ()
    chat: str = ""


@dataclass(frozen=True, slots=True)
class WrittenTalk:
    """One talk. `slots`: for each hole the kind of value, or the values."""

    turns: tuple[Turn, ...]
    slots: dict[str, str]


def _written(lines: list[str]) -> WrittenTalk:
    said: tuple[str, ...] = ()
    turns, slots = list[Turn](), dict[str, str]()
    for line in lines:
        key, mark, rest = line.partition(": ")
        if mark and key == "say":
            said = split_phrases(rest)
        elif mark and key == "call":
            tool, *takes = (part.strip() for part in rest.split("|"))
            pairs = [(name.strip(), value.strip()) for name, _, value in (part.partition("=") for part in takes)]
            turns.append(Turn(said, tool, tuple(pairs)))
        elif mark and key == "chat":
            turns.append(Turn(said, chat=rest.strip()))
        else:
            name, _, values = line.partition(" = ")
            slots[name] = values.strip()
    return WrittenTalk(tuple(turns), slots)


@cache
def talks(split: Split) -> tuple[WrittenTalk, ...]:
    """The talks that a split may use: a tenth, by hash, is for scoring only."""
    found = [*sections("written_talks.txt")]
    return tuple(_written(lines) for name, lines in found if held_out(f"talk {name}") == (split == "test"))


def _value(s: Scene, spec: str) -> str:
    """A value of a slot, as it is said."""
    kind, *ends = spec.split(" ")
    if kind == "number" and len(ends) == 2:
        return s.number(s.whole(int(ends[0]), int(ends[1])))
    if spec in ("day", "month", "item"):
        return s.value(spec)
    makers: dict[str, Callable[[Scene], str]] = {"time": time_of_day, "task": task, "word": Scene.word}
    if spec in makers:
        return makers[spec](s)
    return s.value("name") if spec == "person" else s.rng.choice([value.strip() for value in spec.split(",")])


@dataclass(slots=True)
class Desk:
    """The data and answers of the tools in one talk, with replies as in the other scenes."""

    s: Scene
    timers: list[tuple[str, str]] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    reminders: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lists: dict[str, list[str]] = field(default_factory=dict)
    result: str = ""
    """The latest number."""
    today: dt.date = dt.date(2026, 1, 1)

    def copy(self) -> Desk:
        """A copy of the current state."""
        lists = {name: [*items] for name, items in self.lists.items()}
        rows = ([*self.timers], [*self.alarms], [*self.reminders], [*self.notes])
        return Desk(self.s, *rows, lists, self.result, self.today)

    def call(self, tool: str, kind: str, given: dict[str, str]) -> None:
        """The call, its result and the reply. Raises Unusable if the texts have no reply for that."""
        if tool == "calculate":
            self.result = calculated(self.s, given["expression"], said_sum(given["expression"]), kind) or ""
            return
        try:
            result, reply = getattr(self, f"_{tool}")(**given)
        except (answers.AnswerError, IndexError, KeyError) as error:
            raise Unusable(tool) from error
        self.s.call(tool, result, kind, **given)
        self.s.say(reply, kind=f"reply {tool}")

    # ---------------------------------------------------------------------------------------- time

    def _get_time(self) -> tuple[str, str]:
        now = answers.clock(dt.time(self.s.rng.randrange(24), self.s.rng.randrange(60)))
        return now, f"It is {now}."

    def _get_date(self, day: str = "") -> tuple[str, str]:
        full = answers.date(answers.find_day(day, self.today))
        named = day if day in ("tomorrow", "yesterday") or day[:1].isupper() else f"the {day}"
        return full, f"{named} {'was' if day == 'yesterday' else 'is'} {full}." if day else f"Today is {full}."

    def _days_until(self, day: str) -> tuple[str, str]:
        days = answers.days_until(day, self.today)
        return days, f"It is {days} until {day}."

    def _set_timer(self, duration: str, label: str = "") -> tuple[str, str]:
        said = answers.duration(answers.seconds_of(duration))
        self.timers.append((said, label))
        return answers.timer(said, label), f"Your {label + ' ' if label else ''}timer for {said} has started."

    def _change_timer(self, duration: str) -> tuple[str, str]:
        said, (_, label) = answers.duration(answers.seconds_of(duration)), self.timers.pop()
        self.timers.append((said, label))
        return answers.timer(said, label), f"Your {label + ' ' if label else ''}timer is now set for {said}."

    def _cancel_timer(self, label: str = "") -> tuple[str, str]:
        found = [row for row in self.timers if not label or row[1] == label][-1]
        self.timers.remove(found)
        return answers.timer(*found), f"I cancelled your {found[1] + ' ' if found[1] else ''}timer for {found[0]}."

    def _list_timers(self) -> tuple[str, str]:
        rows = [answers.timer(*row) for row in self.timers]
        return answers.listed(rows, "no timer is running"), (
            answers.counted("timer", rows) if rows else "There is no timer running."
        )

    def _set_alarm(self, time: str, day: str = "") -> tuple[str, str]:
        said = said_time(self.s, time)
        self.alarms.append(f"{said}, {day}" if day else said)
        when = f" {day}" if day == "tomorrow" else f" on {day}" if day else ""
        return self.alarms[-1], f"Your alarm is set for {said}{when}."

    def _cancel_alarm(self, time: str = "") -> tuple[str, str]:
        wanted = time.removesuffix(" am").removesuffix(" pm")
        found = [row for row in self.alarms if row.startswith((wanted, f"{wanted}:00"))][-1]
        self.alarms.remove(found)
        return found, f"I cancelled your alarm for {found}."

    def _list_alarms(self) -> tuple[str, str]:
        if len(self.alarms) == 1:
            return self.alarms[0], f"Your alarm is set for {self.alarms[0]}."
        return answers.listed(self.alarms, "no alarm is set"), (
            answers.counted("alarm", self.alarms) if self.alarms else "There is no alarm set."
        )

    def _set_reminder(self, text: str, time: str) -> tuple[str, str]:
        self.reminders.append(answers.entry(text, time))
        return self.reminders[-1], f"I will remind you to {turned(text)} {time}."

    def _list_reminders(self) -> tuple[str, str]:
        told = "; and to ".join(map(turned, self.reminders))
        return answers.listed(self.reminders, "no reminders"), f"You wanted to {told}." if told else (
            "You have no reminders."
        )

    # --------------------------------------------------------------------------- numbers and words

    def _convert(self, value: str, unit: str, to: str) -> tuple[str, str]:
        result = answers.convert(value, unit, to)
        self.result = result.split(" is ")[1].split(" ")[0]
        return result, f"{result}."

    def _spell(self, word: str) -> tuple[str, str]:
        letters = answers.spell(word)
        return letters, f"It is spelled {letters}."

    def _flip_coin(self) -> tuple[str, str]:
        side = self.s.rng.choice(["heads", "tails"])
        return side, f"It is {side}."

    def _roll_die(self, sides: str = "6") -> tuple[str, str]:
        rolled = str(self.s.rng.randint(1, int(sides)))
        return rolled, f"You rolled a {rolled}."

    # -------------------------------------------------------------------------------- lists, notes

    def _list_add(self, items: str, list: str = "shopping") -> tuple[str, str]:
        self.lists.setdefault(list, []).extend(items.split(", "))
        return items, f"I added {shown(items.split(', '))} to your {list} list."

    def _list_remove(self, items: str, list: str = "shopping") -> tuple[str, str]:
        for item in items.split(", "):
            if item not in self.lists.get(list, []):
                return f"{item} is not on the list", f"I see no {item} on the list."
            self.lists[list].remove(item)
        return items, f"I removed {shown(items.split(', '))} from your {list} list."

    def _list_read(self, list: str = "shopping") -> tuple[str, str]:
        told = ", ".join(self.lists.get(list, []))
        return told or "empty", f"On your {list} list: {told}." if told else f"Your {list} list is empty."

    def _list_clear(self, list: str = "shopping") -> tuple[str, str]:
        self.lists.pop(list, None)
        return "cleared", f"Your {list} list is empty now."

    def _note_add(self, text: str) -> tuple[str, str]:
        self.notes.append(text)
        return "noted", "I wrote that down."

    def _note_read(self) -> tuple[str, str]:
        told = "; ".join(self.notes)
        return told or "no notes", f"Your notes say: {told}." if told else "You have no notes."

    # -------------------------------------------------------------------------------------- talk

    def _undo(self) -> tuple[str, str]:
        return "ok", "Okay, I took that back."

    def _start_over(self) -> tuple[str, str]:
        return "ok", "All right, we start over."

    def _switch_persona(self, name: str = "") -> tuple[str, str]:
        who = name or self.s.rng.choice(["Ada", "Ben"])
        return who, f"You are now talking to {who}."


def _put(s: Scene, it: WrittenTalk) -> None:
    """One written talk, with one set of values."""
    said = {name: _value(s, spec) for name, spec in it.slots.items()}
    if len({value.lower() for value in said.values()}) < len(said):
        raise Unusable("the same twice")
    desk, before, holes = Desk(s, today=some_day(s)), list[Desk](), dict[str, str]()
    for turn in it.turns:
        line, kept = _line(s, turn)
        holes |= s.user(line, **said, **kept)
        if turn.chat:
            s.say(*CHATS[turn.chat], kind=f"chat {turn.chat}")
            continue
        given = {name: capitals(_filled(value, holes | {"result": desk.result})) for name, value in turn.takes}
        if turn.tool == "undo" and before:
            desk = before.pop()
        else:
            before.append(desk.copy())
        desk.call(turn.tool, f"call {turn.tool}" if turn is it.turns[0] else "follow-up call", given)


def _line(s: Scene, turn: Turn) -> tuple[str, dict[str, str]]:
    """One of a turn's phrasings; words that its call copies are slots, too, so that no noise changes them."""
    line, kept = s.rng.choice(turn.said), dict[str, str]()
    for word in {word for _, value in turn.takes for word in re.findall("[a-z]+", _HOLE.sub("", value))}:
        line, found = re.subn(rf"(?<![\w{{'-]){word}(?![\w}}'-])", f"{{x_{word}}}", line)
        kept |= {f"x_{word}": word} if found else {}
    return line, kept


def _filled(text: str, holes: dict[str, str]) -> str:
    if not all(holes[hole] for hole in _HOLE.findall(text)):
        raise Unusable("no result yet")
    return text.format(**holes)


def spoken_talk(rng: random.Random, split: Split = "train", noise: float = 0.15, practice: bool = False) -> Talk:
    """One to three written talks, other talk between them."""
    while True:
        s = Scene(rng, split, noise, practice)
        for _ in range(rng.choice([1, 1, 2, 3])):
            first = (aside,) if s.chance(0.3) else ()
            for scene in (*first, now_and_then, lambda s: _put(s, rng.choice(talks(split)))):
                turns, known = len(s.turns), dict(s.known)
                try:
                    scene(s)
                except Unusable:
                    del s.turns[turns:]
                    s.known = known
        if s.turns:
            return Talk(s.system, s.tools, s.turns)


def written_talk(rng: random.Random, split: Split = "train", noise: float = 0.15, practice: bool = False) -> Talk:
    """One of the three kinds whose lines were made up by hand."""
    return rng.choice([told_talk, tools_talk, spoken_talk])(rng, split, noise, practice)
