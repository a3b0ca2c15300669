"""Results are saved as a whole or not at all."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from assistant.base.errors import AssistantError
from assistant.commands import _front as front
from assistant.commands._front import save

SAVE = """
import resource, sys
from pathlib import Path
from assistant.base.errors import AssistantError
from assistant.commands._front import save
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    save(Path(sys.argv[1]), b"x" * 5000)
except AssistantError as error:
    print(error)
"""


@pytest.mark.parametrize("before", [None, b"what was there"])
def test_a_disk_without_room_leaves_what_was_there(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "reply.wav"
    if before is not None:
        path.write_bytes(before)
    told = subprocess.run([sys.executable, "-c", SAVE, str(path)], capture_output=True, text=True, check=True)
    assert told.stdout == f"{path} could not be written: File too large\n" and told.stderr == ""
    assert [one.name for one in tmp_path.iterdir()] == ([] if before is None else ["reply.wav"])
    assert before is None or path.read_bytes() == before


def test_a_link_and_the_rights_of_a_file_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    save(link, b"new")
    assert link.is_symlink() and path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(AssistantError, match="could not be written"):
        save(tmp_path / "none" / "a.txt", b"x")


def test_no_command_writes_a_result_in_another_way() -> None:
    """A half-written file is left behind where one does."""
    folder = Path(front.__file__).parent
    writes = {path.name: len(re.findall(r"\.write_(?:bytes|text)\(", path.read_text())) for path in folder.glob("*.py")}
    assert {name: count for name, count in writes.items() if count} == {"_front.py": 1}
