"""Tools that a model can call.

alarms      the tools for alarms and reminders
answers     the wording of the built-in tools' answers
builtin     the tools that every talk has, including those that the small model was trained on
clocks      times of day as people say them
dates       days as people name them, and days that come again
durations   lengths of time
errors      what a tool raises when it cannot answer
home        the one store of a home folder, and what rings
kept        a talk's view of it, which can take back what the talk did
lists       the tools for lists and notes
mcp/        tools of MCP servers
memory      what every talk knows, as a file that people edit
moments     times, days, lengths and repeats of a whole text become a moment, or a question
own         a person's own tools, from files in the home folder
phrases     a text as tokens, and the phrases and numbers in it
registry    functions with type hints, declared, checked and run
remembering  the tools for what every talk knows
repeats     what comes again, and when next
rows        what is stored, as values
running     what runs and is kept, for a person to change with the hand
time_words  the words for all of these, by language
timers      the tools for timers
wall        wall-clock times and moments, where clocks are put forward and back
"""

from typing import TYPE_CHECKING

from capsules.exec.lazy import lazy_names

if TYPE_CHECKING:
    from assistant.tools.own import tool

__all__ = ["tool"]

__getattr__ = lazy_names(__name__, {"own": "tool"})
