"""The house in figures: how its folders depend on each other, and how large its largest parts are.

python -m tests.house [FOLDER]     of this checkout, or of another one

A *unit* is a first-level folder or a loose file of `assistant/`. An *arrow* is at least one import of one unit by
another, wherever in a file it stands; imports of types count, since what is only needed to read a file is needed to
read it. `tests/test_house.py` holds the figures that may only fall.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = ("assistant", "llm_engine", "tts_engine", "capsules")
BESIDE = ("recipes", "benchmarks")
ENTRY = re.compile(r" *((?:[a-z_][\w.]*/?, )*[a-z_][\w.]*/?)( {2}.*)?")
"""A line of a table of contents: names, and two spaces before what is said of them, if that is not on the next line."""


@dataclass(frozen=True)
class File:
    """A source file, parsed when it is first asked for."""

    root: Path
    path: Path

    @property
    def place(self) -> str:
        return self.path.relative_to(self.root).as_posix()

    @property
    def module(self) -> str:
        return self.place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))


@cache
def file_at(root: Path, path: Path) -> File:
    return File(root, path)


def files_of(root: Path, *packages: str) -> list[File]:
    return [file_at(root, path) for package in packages for path in sorted((root / package).rglob("*.py"))]


# ------------------------------------------------------------------------------------------------ arrows


def unit_of(file: File) -> str:
    """The first-level folder, or the loose file, that a file of `assistant/` belongs to."""
    return file.place.split("/")[1].removesuffix(".py")


def imported(file: File, modules: Iterable[str]) -> Iterator[str]:
    """Modules of the product that a file imports; `from package import module` is an import of the module."""
    for node in file.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names = (f"{node.module}.{alias.name}", node.module or "")
                yield from [name for name in names if name in modules][:1]


def arrows(root: Path = ROOT) -> set[tuple[str, str]]:
    """Which unit of `assistant/` imports which other."""
    modules = {file.module: file for file in files_of(root, "assistant")}
    pairs = {
        (unit_of(file), unit_of(modules[name]))
        for file in modules.values()
        for name in imported(file, modules)
        if name != "assistant"
    }
    return {(one, other) for one, other in pairs if one != other}


def loose(root: Path = ROOT) -> list[str]:
    return sorted(path.stem for path in (root / "assistant").glob("*.py") if path.name != "__init__.py")


def circle(root: Path = ROOT) -> list[str]:
    """Folders each of which needs every other; `assistant` with its loose files is one folder among them."""
    alone = set(loose(root))
    below: dict[str, set[str]] = defaultdict(set)
    for pair in arrows(root):
        one, other = ("assistant" if unit in alone else unit for unit in pair)
        below[one].add(other)
    reached = {folder: _reached(folder, below) for folder in list(below)}
    return sorted(folder for folder in reached if folder in reached[folder])


def _reached(start: str, below: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [other for other in below[start] if other != start]
    while ahead:
        folder = ahead.pop()
        if folder not in found:
            found.add(folder)
            ahead += below.get(folder, ())
    return found


# ------------------------------------------------------------------------------------------------- sizes


def functions(root: Path = ROOT) -> list[tuple[int, str]]:
    """(lines, place) of every function of the product, docstring counted and decorators not, the longest first."""
    found = [
        (node.end_lineno - node.lineno + 1, f"{file.place}: {node.name}")
        for file in files_of(root, *PRODUCT)
        for node in file.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    ]
    return sorted(found, reverse=True)


def constructors(root: Path = ROOT) -> list[tuple[int, str]]:
    """(arguments without self, place) of every `__init__` of the product, the widest first."""
    found = []
    for file in files_of(root, *PRODUCT):
        for node in file.nodes:
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
                        taken = inner.args
                        count = len([*taken.posonlyargs, *taken.args, *taken.kwonlyargs]) - 1
                        found.append((count, f"{file.place}: {node.name}"))
    return sorted(found, reverse=True)


def anys(root: Path = ROOT) -> Counter[str]:
    """How often the type `Any` stands in which file of `assistant/`, its imports counted and prose not."""
    found = {file.place: _code(file).split().count("Any") for file in files_of(root, "assistant")}
    return Counter({place: count for place, count in found.items() if count})


def classes(root: Path = ROOT) -> list[tuple[int, str]]:
    """(lines, place) of every class of the product, docstring counted and decorators not, the longest first."""
    found = [
        (node.end_lineno - node.lineno + 1, f"{file.place}: {node.name}")
        for file in files_of(root, *PRODUCT)
        for node in file.nodes
        if isinstance(node, ast.ClassDef) and node.end_lineno is not None
    ]
    return sorted(found, reverse=True)


def line_count(root: Path, *packages: str) -> int:
    return sum(len(file.text.splitlines()) for file in files_of(root, *packages))


# ------------------------------------------------------------------------------------------------- names


@dataclass(frozen=True)
class Methods:
    """The methods that one class defines itself, dunder methods left out, and the names of its bases. `properties`:
    those of them that a plain attribute may stand for."""

    place: str
    own: frozenset[str]
    properties: frozenset[str]
    bases: tuple[str, ...]


def method_owners(root: Path = ROOT) -> dict[str, set[str]]:
    """For each method name the independent classes that define it.

    A class that overrides a base of the product, or has every method of one of its protocols (an attribute will do for
    a property), stands under that base or protocol: a contract with many implementations is one use of its names.
    """
    known = {
        node.name: Methods(f"{file.place}: {node.name}", _own_methods(node), _properties(node), _base_names(node))
        for file in files_of(root, *PRODUCT)
        for node in file.nodes
        if isinstance(node, ast.ClassDef)
    }
    contracts = [methods for methods in known.values() if "Protocol" in methods.bases and methods.own]
    owners: dict[str, set[str]] = defaultdict(set)
    for methods in known.values():
        ancestors = _ancestors(methods, known)
        everything = frozenset().union(*(ancestor.own for ancestor in ancestors))
        for name in methods.own:
            declaring = [
                contract for contract in contracts
                if name in contract.own and contract.own - contract.properties <= everything
            ]  # fmt: skip
            first = [ancestor for ancestor in ancestors if name in ancestor.own][-1]
            owners[name].add((declaring or [first])[0].place)
    return owners


def shared_methods(root: Path = ROOT) -> list[tuple[int, str]]:
    """(independent classes, method name) of every name that stands in four classes or more, the most shared first."""
    counts = ((len(places), name) for name, places in method_owners(root).items())
    return sorted((pair for pair in counts if pair[0] > 3), reverse=True)


def _own_methods(node: ast.ClassDef) -> frozenset[str]:
    names = (inner.name for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(name for name in names if not name.startswith("__"))


def _properties(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)
        and any(ast.unparse(decorator) == "property" for decorator in inner.decorator_list)
    )  # fmt: skip


def _base_names(node: ast.ClassDef) -> tuple[str, ...]:
    return tuple(ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases)


def _ancestors(methods: Methods, known: dict[str, Methods]) -> list[Methods]:
    found = [methods]
    for methods_above in found:
        found += [known[base] for base in methods_above.bases if base in known and known[base] not in found]
    return found


def class_names(root: Path, *packages: str) -> dict[str, list[str]]:
    """Public classes at the top level of a module, and where they stand."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in files_of(root, *packages):
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(file.place)
    return found


def twice(root: Path = ROOT, *packages: str) -> dict[str, list[str]]:
    found = class_names(root, *(packages or (*PRODUCT, *BESIDE, "tests")))
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def contents(init: Path) -> tuple[set[str], set[str]]:
    """(what stands in a folder, what its `__init__` lists): modules and packages by their names alone."""
    text = ast.get_docstring(ast.parse(init.read_text("utf-8")), clean=False) or ""
    rows = [match for line in text.splitlines() if (match := ENTRY.fullmatch(line))]
    listed = {name.rstrip("/") for row in rows if row[2] or ", " in row[1] for name in row[1].split(", ")}
    folder = init.parent
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    other = {name for name in listed if (folder / name).exists()}  # `tiny/`, `host.cpp`: no modules, but there
    return modules | packages | other, listed


def inits(root: Path = ROOT) -> list[Path]:
    return [file.path for file in files_of(root, *PRODUCT, *BESIDE) if file.path.name == "__init__.py"]


# ----------------------------------------------------------------------------------------------- sentences

FRONTED = re.compile(r"(Who|What|Where|Of)\b")
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"'(])")


def docstrings(file: File) -> Iterator[str]:
    """Every docstring of a file, those of attributes included."""
    for node in file.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in node.body:
                value = inner.value if isinstance(inner, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def prose(markdown: str) -> str:
    """Markdown without headings and code blocks; list items and table cells become paragraphs of their own."""
    lines = re.sub(r"(?ms)^ *```.*?^ *```$|^#+ .*?$", "", markdown).splitlines()
    marked = (re.sub(r"^\s*([-*] |\d+\. |> )", "\n\n", line) for line in lines)
    return "\n".join(line.replace("|", "\n\n") for line in marked)


def sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        yield from filter(None, SENTENCE_END.split(" ".join(paragraph.split())))


def fronted(root: Path = ROOT) -> tuple[list[str], int]:
    """(sentences that open with a headless who, what or where or with "of", number of all): docstrings, Markdown.

    Questions are left out, and the model cards in `tiny/`, which are records of what was trained.
    """
    bad, count = [], 0
    texts = [(file.place, text) for file in files_of(root, *PRODUCT, *BESIDE) for text in docstrings(file)]
    texts += [(path.relative_to(root).as_posix(), prose(path.read_text("utf-8"))) for path in _pages(root)]
    for place, text in texts:
        for sentence in sentences(text):
            count += 1
            opening = sentence.lstrip("*_\"'(` ")
            if FRONTED.match(opening) and not sentence.rstrip("*_\"') ").endswith("?"):
                bad.append(f"{place}: {sentence}")
    return bad, count


def _pages(root: Path) -> list[Path]:
    above = sorted(root.glob("*.md")) + sorted((root / "docs").glob("*.md"))
    return above + [page for folder in (*PRODUCT, *BESIDE, "ui") for page in sorted((root / folder).rglob("*.md"))
                    if "tiny" not in page.parts]  # fmt: skip


# ------------------------------------------------------------------------------------------- the small model

SMALL_ROOM = "assistant/llm/small/"
SMALL_MARKS = re.compile(
    r"\b(limited|small_mind|SmallMind|small_model|for_small_model|wordguide|WordGuide|ReplyGuide|SaidCallGuide"
    r"|by_heart|known_tools|known_replies|reply_guide|tool_retrieval|emergency|recall|TRAINED_TOOLS"
    r"|assistant\.llm\.small|SMALL_REACH)\b"
)
"""Names by which a file shows that it knows of the shipped model."""


def small_mentions(root: Path = ROOT) -> list[str]:
    """Files outside the small model's folder that name it; `tiny/` and the table of profiles hold its weights."""
    found = [file.place for file in files_of(root, *PRODUCT) if SMALL_MARKS.search(_code(file))]
    return [place for place in found if not place.startswith(SMALL_ROOM)]


def _code(file: File) -> str:
    """Names of a file, those that it defines included, with neither strings nor comments."""
    used = []
    for node in file.nodes:
        if isinstance(node, ast.Name):
            used.append(node.id)
        elif isinstance(node, ast.Attribute):
            used.append(node.attr)
        elif isinstance(node, ast.arg):
            used.append(node.arg)
        elif isinstance(node, ast.ImportFrom):
            used += [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            used += [alias.name for alias in node.names]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            used.append(node.name)
    return " ".join(used)


# --------------------------------------------------------------------------------- settings and options


def settings() -> list[str]:
    """Settings of the process, each also a line of `config.toml` and a variable."""
    from assistant.app.config import Config

    return [field.name for field in fields(Config) if field.name not in ("home", "origins")]


def options() -> list[str]:
    """Options over all commands, `--help` left out. One with the same name and help in several counts once."""
    from assistant.cli import build_parser

    found = {
        (flag, action.help)
        for parser in parsers(build_parser())
        for action in parser._actions
        for flag in action.option_strings[-1:]
    }
    return sorted(flag for flag, _ in found if flag != "--help")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its subcommands, aliases once."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in {id(one): one for one in action.choices.values()}.values():
                yield from parsers(below)


def main(root: Path) -> None:
    ring, files, among = circle(root), loose(root), arrows(root)
    (lines, longest), (count, widest) = functions(root)[0], constructors(root)[0]
    everywhere, product = twice(root), twice(root, *PRODUCT, *BESIDE)
    print(f"{len(ring):5} folders in a circle: {', '.join(ring) or 'none'}")
    print(f"{len(files):5} loose files: {', '.join(files)}")
    print(f"{len(among):5} arrows between {len({unit for pair in among for unit in pair})} units")
    print(f"{lines:5} lines in the longest function ({longest})")
    print(f"{count:5} arguments of the widest constructor ({widest})")
    print(f"{len(everywhere):5} class names used twice, tests counted; {len(product)} without: {', '.join(product)}")
    print(f"{anys(root).total():5} times Any in assistant/")
    over = [f"{place} {lines}" for lines, place in classes(root) if lines > 300]
    print(f"{len(over):5} classes above 300 lines: {', '.join(over)}")
    shared = shared_methods(root)
    print(f"{len(shared):5} method names in four independent classes or more, most: {shared[:5]}")
    bad, count = fronted(root)
    print(f"{len(bad):5} of {count} sentences fronted, {100 * len(bad) / max(count, 1):.1f} %")
    mentions = small_mentions(root)
    print(f"{len(mentions):5} files outside its room name the small model: {', '.join(mentions)}")
    print(f"{line_count(root, SMALL_ROOM):5} lines in the small model's room")
    print(f"{line_count(root, *PRODUCT):5} lines of product, {line_count(root, 'tests')} of tests")
    if root == ROOT:  # they are counted by import
        print(f"{len(settings()):5} settings, {len(options())} options over all commands")
    readme = root / "README.md"
    print(f"{len(readme.read_text('utf-8').split()) if readme.exists() else 0:5} words in README")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
