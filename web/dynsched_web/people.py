"""People who may log in: a file of names, roles, tenants and hashed passwords.

One line each, `name:role:tenant:hash`; the tenant is empty for all tenants, the hash is `-` for
somebody whom only a trusted proxy lets in. A changed file holds at once, for open sessions too.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from werkzeug.security import check_password_hash, generate_password_hash

from dynsched.domain.access import Role
from dynsched.domain.names import check_name
from dynsched.errors import InvalidInput

log = logging.getLogger("dynsched.web")

METHOD = "scrypt"
NO_PASSWORD = "-"  # noqa: S105  # it says that there is none
PASSWORD_MIN, PASSWORD_MAX = 8, 1_024
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may log in.

    Attributes:
        tenant: the only one whose jobs and runs are shown; None is all.
        hashed: the password, hashed.
    """

    name: str
    role: Role
    tenant: str | None
    hashed: str

    @property
    def mark(self) -> str:
        """Return what changes with anything about the person; sessions are bound to it."""
        text = f"{self.name}\n{self.role.value}\n{self.tenant}\n{self.hashed}"
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    @property
    def line(self) -> str:
        """Return the person as a line of the file."""
        return f"{self.name}:{self.role.value}:{self.tenant or ''}:{self.hashed}"


def new_person(name: str, password: str, *, role: Role, tenant: str | None = None) -> Person:
    """Return a person with a hashed password.

    Raises:
        InvalidInput: the name, the tenant or the password cannot be used.
    """
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        mend = f"give {PASSWORD_MIN} to {PASSWORD_MAX} characters"
        raise InvalidInput("password", "its length is out of range", mend)
    person = Person(
        name=name, role=role, tenant=tenant, hashed=generate_password_hash(password, METHOD)
    )
    return read_line(person.line, "person")


def read_line(line: str, where: str) -> Person:
    """Return the person of a line.

    Raises:
        InvalidInput: the line has another form.
    """
    name, role, tenant, hashed = (*line.strip().split(":", 3), "", "", "")[:4]
    if not NAME.fullmatch(name):
        raise InvalidInput(where, "the name is empty or has other characters than letters, digits")
    if role not in {one.value for one in Role}:
        known = ", ".join(one.value for one in Role)
        raise InvalidInput(where, f"{role!r} is no role", f"give {known}")
    if tenant:
        check_name(tenant, where)
    if hashed != NO_PASSWORD and not hashed.startswith(f"{METHOD}:"):
        raise InvalidInput(where, "the password is not hashed", "`dynsched web-user` writes lines")
    return Person(name=name, role=Role(role), tenant=tenant or None, hashed=hashed)


def read_people(text: str, where: str) -> dict[str, Person]:
    """Return the people of a file by their names.

    Raises:
        InvalidInput: a line has another form, or names somebody twice.
    """
    found: dict[str, Person] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        person = read_line(line, f"{where}, line {number}")
        if person.name in found:
            raise InvalidInput(f"{where}, line {number}", f"{person.name} is there twice")
        found[person.name] = person
    return found


class People:
    """A password file that is read again when it changes.

    Args:
        path: the file.

    Raises:
        InvalidInput: it cannot be read, or a line has another form.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._read: tuple[int, int, int] | None = None
        self._people: dict[str, Person] = {}
        self._nobody = generate_password_hash("nobody's password", METHOD)
        self._load()

    def find(self, name: str) -> Person | None:
        """Return a person by name, as the file says now."""
        try:
            self._load()
        except InvalidInput as error:
            log.warning("the password file is not read again: %s", error)
        return self._people.get(name)

    def check(self, name: str, password: str) -> Person | None:
        """Return the person if the password is right; a wrong name takes as long to say."""
        person = self.find(name)
        hashed = self._nobody if person is None or person.hashed == NO_PASSWORD else person.hashed
        right = check_password_hash(hashed, password[:PASSWORD_MAX])
        return person if right and person is not None and person.hashed == hashed else None

    def _load(self) -> None:
        with self._lock:
            try:
                found = self._path.stat()
                seen = (found.st_mtime_ns, found.st_size, found.st_ino)
                if seen == self._read:
                    return
                people = read_people(self._path.read_text("utf-8"), str(self._path))
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise InvalidInput(str(self._path), f"it cannot be read: {reason}") from None
            self._people, self._read = people, seen


def add_person(
    path: Path, name: str, password: str, *, role: Role, tenant: str | None = None
) -> Person:
    """Write somebody into a password file, in the place of who had the name; it is made if missing.

    Raises:
        InvalidInput: the file or something that was given cannot be used.
    """
    person = new_person(name, password, role=role, tenant=tenant)
    try:
        text = path.read_text("utf-8") if path.exists() else ""
        read_people(text, str(path))
        kept = [line for line in text.splitlines() if line.partition(":")[0].strip() != name]
        fresh = path.with_name(f"{path.name}.new")
        fresh.touch(mode=0o600)
        fresh.write_text("\n".join([*kept, person.line, ""]), "utf-8")
        fresh.replace(path)
    except OSError as error:
        raise InvalidInput(str(path), f"it cannot be written: {error.strerror}") from None
    return person
