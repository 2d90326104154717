"""The zip of the functions: the same bytes each time, all that they need, and nothing besides."""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import zipfile
from base64 import b64encode
from pathlib import Path

import pytest

from tests.functions.runtime_api import running
from tools import build_zip
from tools.build_zip import (
    fewer_endpoints,
    main,
    merged,
    own_files,
    read_options,
    team_files,
    write_zip,
)
from tools.compiled import compiled, version_of
from tools.locked_wheels import CACHE, PACKAGES, BuildFailed, read_lock, wheels

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 3_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the zip, built from the lock's wheels; skip loudly where they cannot be had."""
    output = tmp_path_factory.mktemp("zip") / "functions.zip"
    try:
        wheels(read_options([]).platform)
    except BuildFailed as error:
        said = f"THE ZIP IS NOT TESTED: {error}; its wheels would be kept in {CACHE}"
        if os.environ.get("DYNSCHED_REQUIRE_ALL"):
            pytest.fail(said)
        pytest.skip(said)
    assert main(["--output", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def unzipped(built: Path) -> Path:
    """Return a folder with the zip's content."""
    folder = built.parent / "content"
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder)
    return folder


def alone(code: str, path: Path, **environment: str) -> str:
    """Run code with a folder and the standard library on its path, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def test_two_builds_have_the_same_bytes(built: Path) -> None:
    """Terraform deploys a function when its hash has changed: content decides, not the day."""
    again = built.with_name("again.zip")
    command = [sys.executable, str(ROOT / "tools" / "build_zip.py"), "--output", str(again)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert again.read_bytes() == built.read_bytes()
    assert re.search(r"^sha256   [0-9a-f]{64}$", done.stdout, re.MULTILINE)
    digest = b64encode(hashlib.sha256(built.read_bytes()).digest()).decode()
    assert f"base64   {digest}\n" in done.stdout  # what Terraform compares


def test_the_zip_is_small(built: Path) -> None:
    """A larger one takes longer to load at each cold start."""
    assert built.stat().st_size <= LIMIT


def test_the_order_and_times_of_files_are_not_in_the_zip(tmp_path: Path) -> None:
    """Names are sorted, times and modes fixed, whatever the folder says."""
    files = {"b.py": b"2", "a.py": b"1"}
    first = write_zip(files, tmp_path / "1.zip")
    assert first == write_zip(dict(reversed(files.items())), tmp_path / "2.zip")
    with zipfile.ZipFile(tmp_path / "1.zip") as archive:
        infos = archive.infolist()
    assert [info.filename for info in infos] == ["a.py", "b.py"]
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {info.external_attr >> 16 for info in infos} == {0o100644}


@pytest.mark.parametrize("name", ["dispatcher", "reaper", "worker"])
def test_a_function_runs_from_the_zip_alone(unzipped: Path, name: str) -> None:
    """Its module, its client of the store and the zones come from there, on any Python."""
    printed = alone(
        f"import dynsched.lambdas.{name} as function, sys\n"
        "from zoneinfo import ZoneInfo, reset_tzpath\n"
        "reset_tzpath([])\n"
        "ZoneInfo('Europe/Paris')\n"
        "import dynsched.storage.sqs\n"
        "outside = [m.__file__ for m in sys.modules.values() if 'site-packages' in"
        " (getattr(m, '__file__', None) or '')]\n"
        "print(function.__file__, outside)",
        unzipped,
        AWS_LAMBDA_RUNTIME_API="127.0.0.1:9",
        DYNSCHED_STORE="dynamodb://p?region=eu-west-1",
        AWS_ACCESS_KEY_ID="none",
        AWS_SECRET_ACCESS_KEY="none",  # noqa: S106  # nobody's
    )
    assert printed == f"{unzipped}/dynsched/lambdas/{name}.py []\n"


def test_the_zip_runs_in_the_real_loop(unzipped: Path, tmp_path: Path) -> None:
    """What is deployed is what is run, from the module's import to the answer."""
    loop = Path(str(importlib.metadata.distribution("awslambdaric").locate_file("")))
    path = os.pathsep.join([str(unzipped), str(loop)])
    told = {"DYNSCHED_STORE": f"sqlite:///{tmp_path}/store.db"}
    with running("dynsched.lambdas.worker.handler", told, folder=tmp_path, path=path) as runtime:
        answer = runtime.invoke({"Records": []})
    assert answer.body == {"batchItemFailures": []}


def test_neither_consoles_nor_the_command_line_are_in_the_zip(built: Path) -> None:
    """Nobody logs in to a function."""
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0].partition(".")[0] for name in names}
    assert not tops & {"dynsched_web", "dynsched_console", "flask", "textual", "click"}
    assert not [name for name in names if name.startswith(("dynsched/cli/", "dynsched/testing/"))]
    assert not [name for name in names if name.endswith(".pyc")]


def test_botocore_has_the_services_in_use_only(built: Path) -> None:
    """Its data for all others would make the zip ten times as large."""
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
    data = [name.split("/") for name in names if name.startswith("botocore/data/")]
    found = {parts[2] for parts in data if len(parts) > 3}
    assert found == {"dynamodb", "lambda", "sqs", "sts"}


def test_the_packages_are_all_that_the_functions_need() -> None:
    """What boto3, croniter, tzdata and urllib3 ask for is there, too."""
    needed, left = set(), ["boto3", "croniter", "tzdata", "urllib3"]
    while left:
        name = left.pop()
        needed.add(name)
        for text in importlib.metadata.requires(name) or []:
            asked = re.match(r"[A-Za-z0-9._-]+", text)
            if asked is not None and "extra ==" not in text and asked[0] not in needed:
                left.append(asked[0])
    assert needed == set(PACKAGES)


def test_the_lock_pins_each_package_by_hashes() -> None:
    """A wheel that was changed on its way is not deployed."""
    pins = read_lock((ROOT / "requirements.lock").read_text("utf-8"))
    assert all(pins[name].hashes for name in PACKAGES)


# a team's own handlers


def test_a_teams_handlers_lie_at_the_top(built: Path, tmp_path: Path) -> None:
    """`DYNSCHED_APP` names them as their folder does; what tools leave behind stays out."""
    (tmp_path / "pkg" / "__pycache__").mkdir(parents=True)
    (tmp_path / "pkg" / "__pycache__" / "x.pyc").write_bytes(b"")
    (tmp_path / "pkg" / "handlers.py").write_text("app = 1\n")
    output = built.with_name("team.zip")
    assert main(["--with", str(tmp_path), "--output", str(output)]) == 0
    with zipfile.ZipFile(output) as archive:
        assert [name for name in archive.namelist() if name.startswith("pkg")] == [
            "pkg/handlers.py"
        ]


def test_a_team_cannot_replace_a_file_of_dynsched(tmp_path: Path) -> None:
    """The build says which file, and whose it is."""
    (tmp_path / "dynsched").mkdir()
    (tmp_path / "dynsched" / "errors.py").write_text("")
    parts = [("dynsched", own_files()), ("mine", team_files(tmp_path))]
    with pytest.raises(BuildFailed, match="mine and dynsched both have dynsched/errors"):
        merged(parts)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--with", "is no folder; name the one that the modules lie in"),
        ("--requirements", "--requirements: there is no file "),
    ],
)
def test_what_is_not_there_is_told_by_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], built: Path, option: str, told: str
) -> None:
    """No traceback, and nothing is written."""
    output = built.with_name("none.zip")
    assert main([option, str(tmp_path / "nowhere"), "--output", str(output)]) == 1
    assert told in capsys.readouterr().err
    assert not output.exists()


def test_an_empty_folder_of_handlers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], built: Path
) -> None:
    """A slip in the name would deploy functions that know no handler."""
    assert built
    assert main(["--with", str(tmp_path), "--output", str(tmp_path / "x.zip")]) == 1
    assert "there is no file in" in capsys.readouterr().err


def test_a_services_endpoints_are_kept_under_their_own_name() -> None:
    """CloudWatch's lie under `monitoring`; the model of the service says so."""
    table: dict[str, object] = {"partitions": [{"services": {"monitoring": {}, "ec2": {}}}]}
    model = gzip.compress(json.dumps({"metadata": {"endpointPrefix": "monitoring"}}).encode())
    files = {f"botocore/data/cloudwatch/2010-08-01{build_zip.MODEL}": model}
    kept = fewer_endpoints(json.dumps(table).encode(), build_zip.prefixes(files))
    assert json.loads(kept) == {"partitions": [{"services": {"monitoring": {}}}]}


# compiled files


def test_compiled_files_are_the_same_each_time_and_are_used(tmp_path: Path) -> None:
    """Without their sources' times; a folder that cannot be written to has them all the same."""
    files = {"a.py": b"import b\n", "b.py": b"X = len({'p', 'q', 'r'})\n", "c.py": b"1/0\n"}
    first = compiled(files, sys.executable, ["a"])
    assert compiled(files, sys.executable, ["a"]) == first
    assert [name.split(".")[0] for name in first] == ["__pycache__/a", "__pycache__/b"]
    for name, content in (files | first).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    os.utime(tmp_path / "b.py", (0, 0))
    (tmp_path / "b.py").write_text("X = 'compiled anew'\n")
    assert alone("import b; print(b.X, b.__cached__ is not None)", tmp_path) == "3 True\n"


def test_a_python_of_another_version_compiles_nothing(
    capsys: pytest.CaptureFixture[str], built: Path
) -> None:
    """The functions would not read its files, and nobody would notice."""
    arguments = ["--compile", sys.executable, "--output", str(built.with_name("c.zip"))]
    if "{}.{}".format(*sys.version_info) == "3.13":
        arguments += ["--python", "3.12"]
    assert main(arguments) == 1
    assert "--compile: that is Python" in capsys.readouterr().err


def test_a_python_that_is_not_there_is_named() -> None:
    """In one sentence."""
    with pytest.raises(BuildFailed, match="nothing-like-it cannot be run"):
        version_of("nothing-like-it")
