"""Lists: what all pages with a filter line share, a page of rows and where the next one begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flask import request

from dynsched.domain.filters import Filter
from dynsched.domain.vocabulary import Vocabulary
from dynsched.errors import FilterError
from dynsched.services.search import Found
from dynsched.services.views import Views
from dynsched_web import htmx
from dynsched_web.desk import access, read
from dynsched_web.scope import scoped
from dynsched_web.showing import show

T = TypeVar("T")

LIMIT = 50
EXAMINE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A page of a list.

    Attributes:
        text: the filter as it was given.
        found: what fits; None if the filter cannot be read.
        fault: what is wrong with the filter; None if nothing is.
        names: of jobs by their ids.
        ticked: ids that are ticked on the page.
        words: the filter in plain words.
    """

    text: str
    found: Found[T] | None
    fault: FilterError | None = None
    names: Mapping[str, str]
    ticked: frozenset[str]
    words: str = ""


Load = Callable[[Views, Filter, str | None], tuple[Found[T], Mapping[str, str]]]


def asked() -> str:
    """Return the filter that the present address names."""
    return request.args.get("q", "").strip()


def page_of(kind: str, vocabulary: Vocabulary, load: Load[T], *, more: str = "") -> Page[T]:
    """Return the page of a list that the present address names.

    Args:
        kind: which list.
        vocabulary: what its filter may ask for.
        load: reads it.
        more: a filter that holds besides.
    """
    text, cursor = asked(), request.args.get("cursor") or None
    ticked = frozenset(request.args.getlist("run"))
    try:
        scoped(text, vocabulary, access())  # a fault is told in the visitor's own words
        given = scoped(f"{text} {more}".strip(), vocabulary, access())
        found, names = read(
            (kind, given.text, cursor, access().tenant), lambda views: load(views, given, cursor)
        )
    except FilterError as fault:
        return Page(text=text, found=None, fault=fault, names={}, ticked=ticked)
    return Page(text=text, found=found, names=names, ticked=ticked, words=given.describe())


def show_list(template: str, part: str, page: Page[Any], **values: object) -> Any:
    """Return a list's page; one whose filter cannot be read says so below it.

    Raises:
        FilterError: only the rows are asked for, and the filter cannot be read.
    """
    if page.fault is not None and htmx.wants_part():
        raise page.fault
    return show(template, part, page=page, **values)


def run_names(views: Views, job_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the names of jobs by their ids."""
    return views.job_names(job_ids)
