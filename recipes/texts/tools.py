"""The built-in tools as the small model learns them: names, parameters, and the form of each result.

The model knows these by heart: its chat template lists only the names, so a persona's prefix stays short. Results are
phrases that a reply can copy, because copying is what a small model does well. All parameters are strings.
`assistant/tools/answers.py` makes the results from plain values; tools and recipe both call it, so they agree.

name            parameters           result, for example
get_time        -                    3:45 pm
get_date        day?                 Friday, November 20, 2026          (tomorrow, yesterday, monday …; default today)
days_until      day                  35 days                            (christmas, monday, July 4, …)
set_timer       duration, label?     5 minutes          | pasta, 5 minutes
change_timer    duration             10 minutes         | no timer is running
cancel_timer    label?               5 minutes          | no timer is running
list_timers     -                    3 minutes 20 seconds; pasta, 50 seconds            | no timer is running
set_alarm       time, day?           7:30 am            | 7:30 am, monday
cancel_alarm    time?                7:30 am            | no alarm is set
list_alarms     -                    7:30 am; 9:00 pm   | no alarm is set
set_reminder    text, time           call Anna, at 5 pm                 (text and time as the user said them)
list_reminders  -                    call Anna, at 5 pm; buy milk, tomorrow             | no reminders
calculate       expression           96                 (12 * 8; 15% of 80; sqrt(81); 5^2) | an error sentence
convert         value, unit, to      10 miles is 16.09 kilometers       | an error sentence
spell           word                 C, A, T
list_add        items, list?         milk, eggs         (items: comma separated; list: shopping by default)
list_remove     items, list?         milk               | milk is not on the list
list_read       list?                milk, eggs, bread  | empty
list_clear      list?                cleared
note_add        text                 noted
note_read       -                    buy flowers; call Tom              | no notes
flip_coin       -                    heads
roll_die        sides?               4                  (sides: 6 by default)
undo            -                    ok                 (takes back the exchange before this one)
start_over      -                    ok
switch_persona  name?                Ben                (no name: whoever is next) | nobody here is called Zoe

A tool that fails returns {"error": "…"}, and the model says that it did not work.
"""

from __future__ import annotations

from typing import Any, Final

PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "get_time": (),
    "get_date": ("day?",),
    "days_until": ("day",),
    "set_timer": ("duration", "label?"),
    "change_timer": ("duration",),
    "cancel_timer": ("label?",),
    "list_timers": (),
    "set_alarm": ("time", "day?"),
    "cancel_alarm": ("time?",),
    "list_alarms": (),
    "set_reminder": ("text", "time"),
    "list_reminders": (),
    "calculate": ("expression",),
    "convert": ("value", "unit", "to"),
    "spell": ("word",),
    "list_add": ("items", "list?"),
    "list_remove": ("items", "list?"),
    "list_read": ("list?",),
    "list_clear": ("list?",),
    "note_add": ("text",),
    "note_read": (),
    "flip_coin": (),
    "roll_die": ("sides?",),
    "undo": (),
    "start_over": (),
    "switch_persona": ("name?",),
}
"""Every built-in tool in the order in which the product declares it; a trailing ? marks an optional parameter."""

TOOL_NAMES: Final = tuple(PARAMETERS)

PERSONAS: Final[dict[str, str]] = {
    "Ada": "You are Ada, a friendly voice assistant. Answer in one or two short sentences.",
    "Ben": "You are Ben, a calm voice assistant. Answer in one or two short sentences.",
}
"""The instructions of the personas that ship with the small models, word for word. The first is the default."""


def specs() -> list[dict[str, Any]]:
    """The tools in the form that a chat template takes (`tools=`): name and parameters, all strings."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {
                    "type": "object",
                    "properties": {key.rstrip("?"): {"type": "string"} for key in keys},
                    "required": [key for key in keys if not key.endswith("?")],
                },
            },
        }
        for name, keys in PARAMETERS.items()
    ]
