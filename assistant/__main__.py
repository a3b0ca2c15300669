"""`python -m assistant` is the `assistant` command."""

from assistant.cli import run_and_exit

run_and_exit()
