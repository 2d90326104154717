"""The program behind `make deploy-local`; what it applies is tried in `test_terraform_story`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import deploy_local


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what is deployed on this machine alone."""
    monkeypatch.setattr(deploy_local, "PLACE", tmp_path)
    monkeypatch.setattr(deploy_local, "PROCESS", tmp_path / "emulator.pid")


def test_without_terraform_it_says_so_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody waits for an emulator on which nothing can be applied."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert deploy_local.main([]) == 1
    assert "no terraform on the PATH" in capsys.readouterr().err
    assert not deploy_local.PROCESS.exists()


def test_what_runs_already_is_not_deployed_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second emulator would take the folder of the first, which nobody could stop any more."""
    deploy_local.PROCESS.write_text(str(os.getpid()))
    monkeypatch.setattr(deploy_local, "find_terraform", lambda: Path("terraform"))
    monkeypatch.setattr(deploy_local, "find_provider", lambda: "")
    assert deploy_local.main([]) == 1
    assert "make deploy-local ARGS=--stop" in capsys.readouterr().err


def test_stopping_what_has_ended_by_itself_is_no_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The machine was started anew, or somebody killed it: the note of its process is old."""
    deploy_local.PROCESS.write_text("4194305")  # beyond what Linux gives to a process
    assert deploy_local.main(["--stop"]) == 0
    assert "nothing was deployed here" in capsys.readouterr().out
    assert not deploy_local.PROCESS.exists()
