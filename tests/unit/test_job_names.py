"""What people write where a job's name is asked for leads to a job or to nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dynsched.bootstrap import build_views
from dynsched.errors import NotFound
from tests.unit.verb_calls import TENANT, Scene


@pytest.mark.parametrize("name", [f"name#{TENANT}", "", "\x00", "a" * 5_000, "\ud800", "sessions"])
def test_what_is_no_jobs_name_is_not_taken_for_the_key_of_another_row(name: str) -> None:
    """The guard of a job that is called `job` lies where a job of that id would."""
    scene = Scene()
    scene.owner.create(replace(scene.spec("active"), name="job"))
    views = build_views(scene.base)
    for look in (
        lambda: views.find_job(name, TENANT),
        lambda: views.find_job("active", name),
        lambda: views.why_instant(name, scene.clock.now(), TENANT),
    ):
        with pytest.raises(NotFound):
            look()
