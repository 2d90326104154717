"""The project's style, as tests: what a reviewer would otherwise have to say each time."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 40
SCRIPT_LINE_CHARACTERS_MAX = 400

# The two places that may read the clock and draw from chance; all others are given both.
SOURCES_OF_TIME_AND_CHANCE = ("src/dynsched/bootstrap.py", "src/dynsched/clock.py")
BANNED = frozenset(
    {
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "os.urandom",
        "time.monotonic",
        "time.monotonic_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.sleep",
        "time.time",
        "time.time_ns",
        "uuid.uuid1",
        "uuid.uuid4",
    }
)
BANNED_MODULES = ("random.", "secrets.")
SLEEPS = frozenset({"asyncio.sleep", "time.sleep"})

VAGUE_MODULES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
# Words of other schedulers, with ours for the same thing.
GLOSSARY = {
    "enqueuer": "dispatcher",
    "execution": "run or attempt",
    "keepalive": "renew",
    "latency": "scheduling delay",
    "lifeline": "reaper",
    "rescue": "reclaim",
    "rescuer": "reaper",
    "stager": "dispatcher",
    "task": "job",
    "trigger": "schedule",
}
# A number named so has a unit, and its name says which: lease_s, delay_ms.
DURATIONS = {
    "age", "delay", "duration", "grace", "interval", "lag", "margin", "period", "timeout", "ttl",
}  # fmt: skip

# Written as patterns, so that this file does not match itself.
REGISTRY_HOST = re.compile(r"\b(?:pypi|pythonhosted|npmjs|crates|deb\.debian)\.(?:org|com|io)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:root|work|home/\w+|Users/\w+)/[\w.]")
FOREIGN_SCRIPT = re.compile(r"<script[^>]*\bsrc\s*=\s*[\"']?(?:https?:)?//", re.IGNORECASE)
OWN_SCRIPTS = "web/dynsched_web/static/"
NOTICE = re.compile(r"@licen[sc]e|\(c\)|copyright|sourceMappingURL", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file of the project."""

    path: str
    lines: list[str]
    tree: ast.Module


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def project_files() -> list[str]:
    """Return the files that git has or would take, which are still there."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted(name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file())


def read_source(path: str) -> Source:
    """Parse one file."""
    text = (ROOT / path).read_text("utf-8")
    return Source(path, text.splitlines(), ast.parse(text, path))


FILES = project_files()
PYTHON = [read_source(path) for path in FILES if path.endswith(".py")]
CODE = [source for source in PYTHON if source.path.startswith(("src/", "console/", "web/"))]
TESTS = [source for source in PYTHON if source.path.startswith("tests/")]


def imported_names(tree: ast.AST) -> dict[str, str]:
    """Return what each name made by an import stands for, in full."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.AST, names: dict[str, str]) -> str:
    """Return `package.module.attribute` for an expression that names one, else the empty text."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        before = full_name(node.value, names)
        return f"{before}.{node.attr}" if before else ""
    return ""


def uses(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the full name and line of each use of something imported."""
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and full_name(node.func, names) == "random.Random":
            if not node.args:
                yield "random.Random()", node.lineno
        elif isinstance(node, ast.Name | ast.Attribute):
            name = full_name(node, names)
            if name and not name.startswith("random.Random"):
                yield name, node.lineno


def time_and_chance(tree: ast.AST) -> list[str]:
    """Return each use of the clock or of chance that is not injected, as `line: name`."""
    return [
        f"{line}: {name}"
        for name, line in uses(tree)
        if name in BANNED or name.startswith(BANNED_MODULES)
    ]


def definitions(tree: ast.AST) -> Iterator[Definition]:
    """Yield every class and function, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            yield node


def docstring_lines(node: ast.AST) -> range:
    """Return the numbers of the lines that a definition's docstring takes."""
    body = getattr(node, "body", [])
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return range(0)


def code_lines(node: Definition, lines: list[str]) -> int:
    """Count a definition's lines without its docstring, blank lines and comments."""
    documentation = docstring_lines(node)
    numbers = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    kept = (lines[number - 1].strip() for number in numbers if number not in documentation)
    return sum(1 for line in kept if line and not line.startswith("#"))


def repeats_another(node: Definition) -> bool:
    """Say whether a definition is documented at another one of its name."""
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    return any(mark.endswith(("overload", ".setter", ".deleter", "override")) for mark in marks)


def undocumented(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield `line: name` of each public definition without a docstring."""
    for node in body:
        if not isinstance(node, Definition) or node.name.startswith("_") or repeats_another(node):
            continue
        if ast.get_docstring(node) is None:
            yield f"{node.lineno}: {prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{prefix}{node.name}.")


def words(name: str) -> list[str]:
    """Split a snake_case or CamelCase name.

    >>> words("_MaxLeaseAge_s")
    ['max', 'lease', 'age', 's']
    """
    return re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def numbers_without_unit(tree: ast.AST) -> Iterator[str]:
    """Yield `line: name` of each annotated int or float that is a duration without a unit."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        else:
            continue
        kinds = set(words(ast.unparse(node.annotation))) if node.annotation else set()
        if kinds & {"int", "float"} and words(name)[-1:] and words(name)[-1] in DURATIONS:
            yield f"{node.lineno}: {name}"


def texts() -> Iterator[tuple[str, str]]:
    """Yield the path and text of each file that is text."""
    for path in FILES:
        data = (ROOT / path).read_bytes()
        if b"\0" not in data:
            yield path, data.decode("utf-8", "replace")


def each(sources: list[Source]) -> pytest.MarkDecorator:
    """Run a test once for each source file, named by its path."""
    return pytest.mark.parametrize("source", sources, ids=[source.path for source in sources])


@each([source for source in CODE if source.path not in SOURCES_OF_TIME_AND_CHANCE])
def test_time_and_chance_are_injected(source: Source) -> None:
    """No library code reads a clock, sleeps or draws from chance by itself."""
    assert time_and_chance(source.tree) == []


@pytest.mark.parametrize(
    "line",
    [
        "import time; time.time()",
        "import time as t; t.monotonic()",
        "from time import sleep as pause; pause(1)",
        "import datetime; datetime.datetime.now()",
        "from datetime import datetime as dt; dt.utcnow()",
        "import random; random.random()",
        "from random import choice; choice([1])",
        "import random; random.Random()",
        "import uuid; f = uuid.uuid4",
    ],
)
def test_a_use_of_time_or_chance_is_found_in_every_spelling(line: str) -> None:
    """The check above sees through aliases, and a function that is passed on without a call."""
    assert len(time_and_chance(ast.parse(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "import random; rng = random.Random(7); rng.random()",
        "from datetime import datetime; datetime.fromisoformat('2026-01-01')",
        "clock.now(); rng.choice([1]); event.time()",
    ],
)
def test_what_is_injected_may_be_used(line: str) -> None:
    """The check above leaves seeded generators and injected clocks alone."""
    assert time_and_chance(ast.parse(line)) == []


@each(PYTHON)
def test_no_file_is_too_long_to_read(source: Source) -> None:
    """A file over the bound holds more than one concept."""
    assert len(source.lines) <= FILE_LINES_MAX


@each(PYTHON)
def test_no_function_is_too_long_to_read(source: Source) -> None:
    """Docstrings, comments and blank lines are free."""
    long = {
        node.name: count
        for node in definitions(source.tree)
        if not isinstance(node, ast.ClassDef)
        and (count := code_lines(node, source.lines)) > FUNCTION_LINES_MAX
    }
    assert long == {}


def test_a_functions_length_leaves_out_what_explains_it() -> None:
    """Of seven lines three are code: the head, a statement and the return."""
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    # why\n    x = 1\n\n    return x'
    node = next(definitions(ast.parse(text)))
    assert code_lines(node, text.splitlines()) == 3


@each([source for source in CODE if source.tree.body])
def test_every_public_name_is_documented(source: Source) -> None:
    """Modules, classes, functions and methods say what they are for."""
    assert ast.get_docstring(source.tree) is not None
    assert list(undocumented(source.tree.body)) == []


def test_a_public_name_without_a_docstring_is_found() -> None:
    """The check above looks into public classes and past private ones."""
    text = 'class A:\n    """A."""\n    def b(self): ...\nclass _C:\n    def d(self): ...\n'
    assert list(undocumented(ast.parse(text).body)) == ["3: A.b"]


@each(PYTHON)
def test_modules_are_named_for_one_thing(source: Source) -> None:
    """A module with a vague name collects what has no place."""
    path = Path(source.path).with_suffix("")
    assert not VAGUE_MODULES & {word for part in path.parts for word in words(part)}


@each(CODE)
def test_names_are_those_of_the_glossary(source: Source) -> None:
    """What the code defines has one name, the same as in the documentation."""
    named = [(node.lineno, node.name) for node in definitions(source.tree)]
    named.append((0, Path(source.path).stem))
    foreign = [
        f"{line}: {name} (say {GLOSSARY[word]})"
        for line, name in named
        for word in words(name)
        if word in GLOSSARY
    ]
    assert foreign == []


@each(CODE)
def test_numbers_that_are_durations_name_their_unit(source: Source) -> None:
    """A number called `timeout` is seconds for one reader and milliseconds for the next."""
    assert list(numbers_without_unit(source.tree)) == []


def test_a_duration_without_a_unit_is_found() -> None:
    """Parameters and fields count; a timedelta carries its unit itself."""
    text = "def f(timeout: float | None, delay_ms: int, ttl: timedelta): ...\nlease_age: int = 3"
    assert sorted(numbers_without_unit(ast.parse(text))) == ["1: timeout", "2: lease_age"]


@each(TESTS)
def test_no_test_sleeps(source: Source) -> None:
    """A test that sleeps is slow on a good day and fails on a bad one; wait for an event."""
    assert [f"{line}: {name}" for name, line in uses(source.tree) if name in SLEEPS] == []


@each(TESTS)
def test_every_test_is_a_sentence_and_says_what_it_proves(source: Source) -> None:
    """The name of a failed test tells what broke, its docstring why that matters."""
    tests = [node for node in definitions(source.tree) if node.name.startswith("test_")]
    assert [node.name for node in tests if ast.get_docstring(node) is None] == []
    assert [node.name for node in tests if len(words(node.name)) < 4] == []


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is the user's setting, a mirror perhaps."""
    assert [path for path, text in texts() if REGISTRY_HOST.search(text)] == []


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    """A clone works anywhere."""
    assert [path for path, text in texts() if MACHINE_PATH.search(text)] == []


def test_no_script_of_others_is_kept_here() -> None:
    """Third-party JavaScript comes from packages, with their versions and licences."""
    for path, text in texts():
        assert not FOREIGN_SCRIPT.search(text), path
        if path.endswith((".js", ".mjs", ".cjs")):
            assert path.startswith(OWN_SCRIPTS), path
            assert not NOTICE.search(text), path
            assert max(map(len, text.splitlines())) <= SCRIPT_LINE_CHARACTERS_MAX, path


def test_the_code_map_names_only_what_exists() -> None:
    """A newcomer who follows the README's map arrives."""
    readme = (ROOT / "README.md").read_text("utf-8")
    section = readme.partition("## Map of the code")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(named) >= 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link of a Markdown page names a file or folder of the project."""
    broken = [
        f"{path}: {target}"
        for path, text in texts()
        if path.endswith(".md")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text)
        if "://" not in target and not (ROOT / path).parent.joinpath(target).exists()
    ]
    assert broken == []


def test_the_lock_satisfies_pyproject() -> None:
    """Each dependency is pinned within its range; `make lock` was not forgotten."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [Requirement(text) for text in [*project["dependencies"], *extras["test"]]]
    asked += [Requirement(text) for text in extras["dev"] if not text.startswith("dynsched[")]
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    pins = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))
    unmet = [
        str(need)
        for need in asked
        if not need.specifier.contains(pins.get(need.name.lower(), "0"), prereleases=True)
    ]
    assert unmet == []
