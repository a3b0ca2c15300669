"""Encoded pictures, stored by their id as long as there is room: one store for all talks."""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping

from capsules.arguments import a_kind, whole
from llm_engine.errors import StateError
from llm_engine.pictures import PictureGrid, SeenPicture

BUDGET = 256 << 20
"""Bytes of embeddings; 300 rows of the smallest published model take 0.6 MB, of the largest 3 MB."""


class PictureStore(Mapping[int, SeenPicture]):
    """Least recently used goes first, except pictures that a talk holds: they are needed again at every rollback across
    them, so the budget gives way."""

    def __init__(self, width: int, budget: int = BUDGET) -> None:
        """width: of an embedding."""
        self._width = width
        self.budget = whole(StateError, "budget", budget)
        self._seen: OrderedDict[int, SeenPicture] = OrderedDict()
        self._held: dict[str, frozenset[int]] = {}

    @property
    def nbytes(self) -> int:
        return sum(one.rows.nbytes for one in self._seen.values())

    def __getitem__(self, name: int) -> SeenPicture:
        seen = self._seen[name]
        self._seen.move_to_end(name)
        return seen

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._seen))

    def __len__(self) -> int:
        return len(self._seen)

    def put(self, name: int, seen: SeenPicture) -> None:
        """Store an encoded picture. Raises StateError if it does not fit its grid, or its id is a token's."""
        a_kind(StateError, "seen", seen, SeenPicture, "an encoded picture, as look gives it,")
        whole(StateError, "name", name, least=-(2**63), most=-1)
        _check(seen.grid)
        if seen.rows.shape != (seen.grid.count, self._width) or not seen.rows.is_cpu:
            raise StateError(
                f"a picture of {seen.grid.rows} × {seen.grid.columns} with embeddings {list(seen.rows.shape)} on "
                f"{seen.rows.device}; [{seen.grid.count}, {self._width}] on the processor are needed"
            )
        self._seen[name] = seen
        self._seen.move_to_end(name)
        self._make_room()

    def hold(self, owner: str, names: Collection[int]) -> None:
        """Protect the pictures that `owner` shows from now on; those it showed before may be dropped."""
        self._held[owner] = frozenset(names)
        if not names:
            del self._held[owner]
        self._make_room()

    def _make_room(self) -> None:
        held: frozenset[int] = frozenset().union(*self._held.values())
        size = self.nbytes
        for name in list(self._seen)[:-1]:  # never the newest
            if size <= self.budget:
                break
            if name not in held:
                size -= self._seen.pop(name).rows.nbytes


def _check(grid: PictureGrid) -> None:
    whole(StateError, "rows", grid.rows, least=1)
    whole(StateError, "columns", grid.columns, least=1)
