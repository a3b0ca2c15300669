"""The pictures of one talk that were meant, beside its journal: one file each, named by its content."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Set
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from assistant.base.picture import DIGEST_BYTES, Picture
from capsules.durable import write_durably

log = logging.getLogger(__name__)


class Album:
    """With `folder` None, nothing is stored."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self.trouble = ""
        """The reason that the last picture is not on disk; "" if it is."""

    def keep(self, pictures: Iterable[Picture]) -> None:
        """Write the pictures to disk before returning, so not for the event loop. If the disk is full, the picture is
        lost at the next restart, and `trouble` says so."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for picture in pictures:
                write_durably(self._folder / picture.digest, [picture.encoded])
            self.trouble = ""
        except OSError as error:
            self.trouble = f"a picture could not be kept ({error.strerror or error}); after a restart it is gone"
            log.warning("%s", self.trouble)

    def find(self, digest: str) -> bytes | None:
        """Return the picture, or None if it is missing or damaged."""
        if self._folder is None or not digest.isalnum():
            return None
        try:
            found = (self._folder / digest).read_bytes()
        except OSError:
            return None
        return found if blake2b(found, digest_size=DIGEST_BYTES).hexdigest() == digest else None

    def only(self, digests: Set[str]) -> None:
        """Delete every picture that nothing shows any more."""
        if self._folder is None or not self._folder.is_dir():
            return
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name not in digests:
                    path.unlink()
            if not digests:
                self._folder.rmdir()

    def remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
