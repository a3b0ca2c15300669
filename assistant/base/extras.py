"""The command that adds an extra to the environment this program runs in.

It names that environment's own Python. The `pip` of another one would not find this program there, and would fetch
whatever the package index has under its name.
"""

import shlex
import sys
from importlib.util import find_spec


def adding(extra: str) -> str:
    """A line for a shell; `uv tool` makes environments that have no pip."""
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{pip} 'voice-assistant[{extra}]'"
