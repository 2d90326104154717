"""Why: what became of one instant of a job, or is to become of it."""

from __future__ import annotations

from collections.abc import Callable

from dynsched.domain.explanation import Explanation
from dynsched.domain.time_words import stamp
from dynsched_console.clipboard import Copy
from dynsched_console.screens.base import SubjectScreen
from dynsched_console.sheet import Link, SheetRow, row
from dynsched_console.text import Piece, sentence_lines, wrapped
from dynsched_console.themes import Tone


class WhyScreen(SubjectScreen):
    """An explanation; its subject is a job's id and an instant, with a blank between."""

    name_of_place = "why"

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.answer: Explanation | None = None

    def reader(self) -> Callable[[], Explanation]:
        """Return a call that explains the instant."""
        job_id, _, instant = self.subject.partition(" ")
        source = self.source
        return lambda: source.why_instant(job_id, instant)

    def rows(self, answer: Explanation) -> list[SheetRow]:
        """Return the cause first, then what it rests on."""
        columns = max(self.size.width - 3, 40)
        tone = Tone.BAD if answer.alarm else Tone.STRONG
        found = [row(Piece(answer.subject, Tone.MUTED)), SheetRow()]
        found += [row(Piece(one, tone)) for one in sentence_lines(answer.headline, columns)]
        found.append(row(Piece(f"cause {answer.cause.value}", Tone.MUTED)))
        if answer.run_id is not None:
            link = Link(place="run", subject=answer.run_id)
            found.append(row(Piece("run ", Tone.MUTED), answer.run_id, link=link))
        if answer.job_id:
            link = Link(place="job", subject=answer.job_id)
            found.append(row(Piece("job ", Tone.MUTED), answer.job_id, link=link))
        found.append(SheetRow())
        for sentence in answer.sentences:
            found += [row(one) for one in sentence_lines(sentence, columns)]
        found += _timeline(answer)
        for hint in answer.hints:
            found += [row(Piece("$ ", Tone.MUTED), one) for one in wrapped(hint, columns - 2, 3)]
        looked = f"{answer.examined:,} rows were read for this"
        return [*found, SheetRow(), row(Piece(looked, Tone.MUTED))]

    def copies(self) -> list[Copy]:
        """Return what can be copied."""
        if self.answer is None:
            return []
        words = "\n".join((self.answer.headline, *self.answer.sentences))
        return [
            Copy("explanation", words),
            *(Copy("mend", hint) for hint in self.answer.hints),
            Copy("run", self.answer.run_id or ""),
        ]


def _timeline(answer: Explanation) -> list[SheetRow]:
    if not answer.timeline:
        return []
    return [
        SheetRow(),
        row(Piece("What happened when", Tone.STRONG)),
        *(row(Piece(f"  {stamp(at)}  ", Tone.MUTED), words) for at, words in answer.timeline),
        SheetRow(),
    ]
