"""Build the zip of the functions on AWS: the same bytes from the same sources and lock.

    python tools/build_zip.py
    python tools/build_zip.py --with handlers --requirements handlers/requirements.txt
    python tools/build_zip.py --compile python3.13

It holds dynsched without its command line and consoles, and the wheels that `requirements.lock`
names for the functions' Python, checked by their hashes. botocore knows every service of AWS and
is ten times as large as the rest; only what the functions use is taken, and what `--service`
names besides. That makes each start of a function faster, too.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import zipfile
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.compiled import compiled, version_of  # noqa: E402
from tools.locked_wheels import MACHINES, BuildFailed, Platform, more_wheels, wheels  # noqa: E402

OUTPUT = ROOT / "build" / "dynsched-lambda.zip"
SOURCES = ROOT / "src"
SERVICES = ("dynamodb", "lambda", "sqs", "sts")
"""What the functions and the targets call; `sts` is asked when a role is assumed."""
LEFT_OUT = (
    "dynsched/cli/",
    "dynsched/testing/",
    "dynsched/__main__.py",
    "boto3/examples/",
    "croniter/tests/",
)
NEVER = frozenset({"__pycache__", ".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
DATA = ("botocore/data/", "boto3/data/")
MODEL = "/service-2.json.gz"
ENDPOINTS = "botocore/data/endpoints.json"
SINGLE_FILES = 3  # parts of the path of what all services share: botocore/data/endpoints.json
EARLIEST = (1980, 1, 1, 0, 0, 0)  # a zip knows no earlier time
MODE = 0o100644 << 16
UNIX = 3
LIMIT_MB = 3.0

Files = dict[str, bytes]


def own_files(sources: Path = SOURCES) -> Files:
    """Return dynsched's own files, by their names in the zip."""
    return {
        name: path.read_bytes()
        for name, path in _tree(sources / "dynsched", sources)
        if not name.startswith(LEFT_OUT)
    }


def team_files(folder: Path) -> Files:
    """Return the files of a team's handlers, which lie at the top of the zip.

    Raises:
        BuildFailed: the folder is not there, or is empty.
    """
    if not folder.is_dir():
        raise BuildFailed(f"--with: {folder} is no folder; name the one that the modules lie in")
    found = {name: path.read_bytes() for name, path in _tree(folder, folder)}
    if not found:
        raise BuildFailed(f"--with: there is no file in {folder}")
    return found


def _tree(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and path.suffix != ".pyc" and not NEVER & set(name.parts):
            yield name.as_posix(), path


def wheel_files(wheel: Path, services: Iterable[str]) -> Files:
    """Return the files of a wheel that the functions need.

    Of its metadata stay the licence and what tells its version.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if _wanted(name, frozenset(services))]
        files = {name: archive.read(name) for name in names}
    if ENDPOINTS in files:
        files[ENDPOINTS] = fewer_endpoints(files[ENDPOINTS], prefixes(files))
    return files


def prefixes(files: Files) -> set[str]:
    """Return under which names the endpoints of the services lie whose data is taken."""
    models = [gzip.decompress(text) for name, text in files.items() if name.endswith(MODEL)]
    return {json.loads(text)["metadata"]["endpointPrefix"] for text in models}


def fewer_endpoints(text: bytes, prefixes: Set[str]) -> bytes:
    """Return the table of endpoints with some services only; all of it is read at each start."""
    table = json.loads(text)
    for partition in table["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services if name in prefixes}
    return json.dumps(table, separators=(",", ":")).encode()


def _wanted(name: str, services: frozenset[str]) -> bool:
    path = PurePosixPath(name)
    if name.endswith("/") or name.startswith(LEFT_OUT) or path.suffix == ".pyc":
        return False
    if path.parts[0].endswith(".dist-info"):
        return path.name == "METADATA" or "licen" in name.lower() or path.name == "NOTICE"
    if name.startswith(DATA):
        return len(path.parts) == SINGLE_FILES or path.parts[2] in services
    return True


def merged(parts: Sequence[tuple[str, Files]]) -> Files:
    """Return the files of all parts together.

    Raises:
        BuildFailed: two parts have a file of one name.
    """
    files: Files = {}
    owner: dict[str, str] = {}
    for part, found in parts:
        for name, content in found.items():
            if name in files and files[name] != content:
                raise BuildFailed(f"{part} and {owner[name]} both have {name}: rename one of them")
            files[name], owner[name] = content, part
    return files


def write_zip(files: Mapping[str, bytes], output: Path) -> str:
    """Write a zip that depends on names and contents only; return its SHA-256."""
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, EARLIEST)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, MODE
            info.create_system = UNIX
            archive.writestr(info, files[name], compresslevel=9)
    unfinished.replace(output)
    return hashlib.sha256(output.read_bytes()).hexdigest()


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return a SHA-256 of names and contents, whatever library compresses them."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()


def build(options: argparse.Namespace) -> tuple[Files, list[tuple[str, Files]]]:
    """Return the files of the zip, and the parts that they came from.

    Raises:
        BuildFailed: something is missing or contradicts something else.
    """
    services = (*SERVICES, *options.service)
    parts = [("dynsched", own_files())]
    parts += [(_title(path), wheel_files(path, services)) for path in wheels(options.platform)]
    if options.requirements is not None:
        team = more_wheels(options.requirements, options.platform)
        parts += [(_title(path), wheel_files(path, services)) for path in team]
    if options.handlers is not None:
        parts.append((str(options.handlers), team_files(options.handlers)))
    if options.compile is not None:
        version = version_of(options.compile)
        if version != options.python:
            raise BuildFailed(f"--compile: that is Python {version}, not {options.python}")
        parts.append((f"compiled by {version}", compiled(merged(parts), options.compile)))
    return merged(parts), parts


def _title(wheel: Path) -> str:
    return " ".join(wheel.name.split("-")[:2])


def report(output: Path, files: Files, parts: Sequence[tuple[str, Files]], digest: str) -> str:
    """Return what was built, for people."""
    size_mb = output.stat().st_size / 1e6
    lines = [f"{part:<28} {sum(map(len, found.values())) / 1e6:7.2f} MB" for part, found in parts]
    lines += [
        f"{'together':<28} {sum(map(len, files.values())) / 1e6:7.2f} MB in {len(files)} files",
        f"{output}: {size_mb:.2f} MB",
        f"sha256   {digest}",
        f"base64   {b64encode(bytes.fromhex(digest)).decode()}",  # as Terraform wants it
        f"content  {content_digest(files)}",
    ]
    return "\n".join(lines)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Build the zip of the functions on AWS.")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the zip goes")
    parser.add_argument(
        "--with",
        dest="handlers",
        type=Path,
        metavar="FOLDER",
        help="a team's own modules, at the top of the zip; DYNSCHED_APP names the app in them",
    )
    parser.add_argument(
        "--requirements", type=Path, metavar="FILE", help="the packages that those modules need"
    )
    parser.add_argument(
        "--service",
        action="append",
        default=[],
        metavar="NAME",
        help="another service of AWS that handlers call by boto3, as s3; may be given again",
    )
    parser.add_argument(
        "--compile",
        metavar="PYTHON",
        help="an interpreter of the functions' version: a cold start takes half the time, the zip"
        " twice the space, and its bytes depend on that interpreter",
    )
    parser.add_argument("--arch", choices=sorted(MACHINES), default="arm64")
    parser.add_argument("--python", default="3.13", metavar="VERSION", help="the functions' Python")
    options = parser.parse_args(arguments)
    options.platform = Platform(options.python, options.arch)
    return options


def main(arguments: Sequence[str]) -> int:
    """Build and say what was built; the exit code is 1 if that cannot be done."""
    options = read_options(arguments)
    try:
        files, parts = build(options)
    except BuildFailed as error:
        print(f"no zip: {error}", file=sys.stderr)
        return 1
    digest = write_zip(files, options.output)
    print(report(options.output, files, parts, digest))
    plain = options.handlers is None and options.compile is None
    if plain and options.output.stat().st_size > LIMIT_MB * 1e6:
        print(f"the zip is larger than {LIMIT_MB:g} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
