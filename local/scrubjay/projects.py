"""How projects are named, and what to say of one that nothing here belongs to. Pure.

A project is what its checkouts have in common: the address of their remote without its spelling, else their first
commit. A folder that is in no repository is a project by its path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath, PureWindowsPath
from types import MappingProxyType

FIRST_COMMIT = "git:"
"""How the name of a project begins that has no remote; its first commit follows."""

COMMIT_CHARS = 16
"""Of a commit in a project's name: two repositories of one person never share so many."""

SAME_HOSTS = MappingProxyType(
    {
        "ssh.github.com": "github.com",
        "www.github.com": "github.com",
        "altssh.gitlab.com": "gitlab.com",
        "altssh.bitbucket.org": "bitbucket.org",
        "ssh.dev.azure.com": "dev.azure.com",
    }
)
"""Names under which a host takes ssh through firewalls, and the name that it has in addresses of the web."""

PREFERRED_REMOTES = ("origin", "upstream")
"""Which remote names the project: the one that a clone makes, then the one of which it is a fork, then the first."""

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:[^/]*@)?(?P<host>\[[^\]@]*\]|[^/:@]*)(?::\d*)?/(?P<path>.*)"
)
_SCP = re.compile(r"(?:[^/@:]*@)?(?P<host>\[[^\]]*\]|[^/:@]{2,}):(?P<path>[^@]*)")
_ESCAPED = re.compile(r"%([2-6][0-9A-Fa-f]|7[0-9A-Ea-e])")
_SECTION = re.compile(r"""\s*\[\s*(?P<name>[\w.-]+)(?:\s+"(?P<sub>(?:[^"\\]|\\.)*)")?\s*\]""")
_VALUE = re.compile(r"\s*(?P<key>[\w-]+)\s*=\s*(?P<value>.*)")

SUGGESTED = 3
"""Names that are suggested: more is a list to read, not a hint."""


def unknown(project: str, known: Collection[str]) -> str:
    """Return what to say of a project that is not among the known ones, with those that may have been meant."""
    found = " or ".join(likely(project, known))
    return f"nothing here belongs to project {project}" + (f"; did you mean {found}?" if found else "")


def likely(project: str, known: Collection[str]) -> list[str]:
    """Return the known projects that may have been meant: those of the same last name, then those spelled alike.

    >>> likely("shop", ["/home/ana/shop", "/home/ana/ship", "harbour"])
    ['/home/ana/shop', '/home/ana/ship']
    """
    last = _last(project)
    same = sorted(name for name in known if _last(name) == last)
    by_last = {_last(name): name for name in sorted(known, reverse=True)}
    folded = {name.casefold(): name for name in sorted(known, reverse=True)}
    alike = [folded[name] for name in get_close_matches(project.casefold(), folded, n=SUGGESTED)]
    alike += [by_last[name] for name in get_close_matches(last, by_last, n=SUGGESTED)]
    return list(dict.fromkeys((*same, *alike)))[:SUGGESTED]


def _last(project: str) -> str:
    return PurePosixPath(project.replace("\\", "/")).name.casefold() or project.casefold()


def called(name: str, folders: Iterable[tuple[str, str]]) -> str | None:
    """Return the project of the folders called `name`, of some (folder, project); None for none or several projects.

    >>> called("Shop", [("/home/ana/shop", "git:1f2e"), ("/tmp/shop", "git:1f2e"), ("/home/ana/ship", "git:77aa")])
    'git:1f2e'
    """
    found = {project for folder, project in folders if _last(folder) == name.casefold()}
    return found.pop() if len(found) == 1 else None


def labels(folders: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return how people are shown the projects that are named by a commit: with the name of the first folder of each.

    >>> labels([("/home/ana/shop", "git:1f2e"), ("/tmp/copy", "git:1f2e"), ("/home/ana/kiln", "git.example/kiln")])
    {'git:1f2e': 'shop (git:1f2e)'}
    """
    found: dict[str, str] = {}
    for folder, project in folders:
        if project.startswith(FIRST_COMMIT):
            found.setdefault(project, f"{PurePosixPath(folder.replace(chr(92), '/')).name} ({project})")
    return found


def remote_name(url: str) -> str | None:
    """Return what all addresses of one repository have in common: host and path, without user, password and port.

    None for an address on this machine, which another clone may write differently: their first commit tells more.

    >>> remote_name("git@github.com:ana/Shop.git"), remote_name("https://ana:secret@github.com/ana/shop")
    ('github.com/ana/shop', 'github.com/ana/shop')
    """
    found = _URL.fullmatch(url.strip())
    if found is None:
        found = None if "://" in url else _SCP.fullmatch(url.strip())
    elif found["scheme"].lower() == "file":
        return None
    if found is None:
        return None
    host = found["host"].strip("[]").casefold().rstrip(".")
    host = SAME_HOSTS.get(host, host)
    parts = [
        part
        for part in _ESCAPED.sub(lambda each: chr(int(each[1], 16)), found["path"])
        .replace("\\", "/")
        .casefold()
        .split("/")
        if part not in ("", ".")
    ]
    if host == "dev.azure.com":
        parts = [part for place, part in enumerate(parts) if part != "_git" and (place or part != "v3")]
    if parts:
        parts[-1] = parts[-1].removesuffix(".git")
    path = "/".join(filter(None, parts))
    return f"{host}/{path}" if host and path and (host + path).isprintable() else None


def remote_url(config: str, instead: Iterable[tuple[str, str]] = ()) -> str | None:
    """Return the address of the remote that names a project, from the text of a repository's configuration.

    `instead` are the beginnings of addresses that git writes anew, and what it writes: the longest that fits counts.
    """
    urls: dict[str, str] = {}
    remote: str | None = None
    for line in config.splitlines():
        if section := _SECTION.match(line):
            remote = section["sub"] if section["name"].lower() == "remote" else None
            line = line[section.end() :]  # noqa: PLW2901 - a value may stand behind its section
        if remote is not None and (value := _VALUE.match(line)) and value["key"].lower() == "url":
            urls.setdefault(remote, _plain(value["value"]))
    named = next((name for name in PREFERRED_REMOTES if urls.get(name)), next(iter(urls), None))
    url = urls[named] if named is not None else ""
    fitting = [(len(begins), begins, written) for begins, written in instead if begins and url.startswith(begins)]
    if fitting:
        _, begins, written = max(fitting)
        url = written + url.removeprefix(begins)
    return url or None


def host_resolved(remote: str, url: str, settings: Callable[[], str]) -> str:
    """Return a remote's name with the host that ssh's `settings` give for a name of the person's own making.

    Only one without a dot is looked up: a full name of a host is what everybody has.

    >>> settings = ["Host *-work", "HostName github.com"]
    >>> host_resolved("hub-work/ana/shop", "git@hub-work:ana/shop", lambda: chr(10).join(settings))
    'github.com/ana/shop'
    """
    host, slash, path = remote.partition("/")
    if "." in host or url.strip().casefold().startswith(("http:", "https:")):
        return remote
    given = ssh_host(host, settings())
    return f"{SAME_HOSTS.get(given, given)}{slash}{path}"


def ssh_host(alias: str, settings: str) -> str:
    """Return the host that ssh's settings give for an alias: the first that fits counts, as in ssh_config(5)."""
    fits = True
    for line in settings.splitlines():
        key, _, value = line.strip().replace("=", " ", 1).partition(" ")
        words = value.strip().strip('"').split()
        if key.casefold() == "host":
            plain = [word for word in words if not word.startswith("!")]
            fits = any(fnmatchcase(alias, word.casefold()) for word in plain) and not any(
                fnmatchcase(alias, word[1:].casefold()) for word in words if word.startswith("!")
            )
        elif key.casefold() == "match":  # may run a program to be decided
            fits = False
        elif key.casefold() == "hostname" and fits and words:
            return words[0].replace("%h", alias).casefold().rstrip(".")
    return alias


def _plain(value: str) -> str:
    """Return a value of git's configuration without quotes, escapes and a comment."""
    plain: list[str] = []
    quoted = escaped = False
    for character in value.strip():
        if escaped:
            plain.append({"n": "\n", "t": "\t"}.get(character, character))
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        else:
            plain.append(character)
    return "".join(plain).strip()


def is_folder(name: str) -> bool:
    """Say whether a project is named by the path of a folder, of this system or of another."""
    return name.startswith("/") or PureWindowsPath(name).is_absolute()


def names_of(
    folder: str,
    *,
    top: str | None,
    main: str | None,
    remote: str | None,
    first: str | None,
    spelled: str | None = None,
) -> list[str]:
    """Return the names that a folder's project may have here, the best of a new project first.

    `top` is the folder of the checkout and `main` that of its repository; the others as in `Checkout`.
    """
    commit = None if first is None else f"{FIRST_COMMIT}{first[:COMMIT_CHARS]}"
    return list(dict.fromkeys(name for name in (remote, spelled, commit, top, main, folder) if name))


def chosen(names: Iterable[str], folder: str, is_known: Callable[[str], bool]) -> str:
    """Return the name that a project has here: the one that something is stored under already, else the best.

    A folder's own path comes first: before projects had names, everything was stored under it, and stays readable. So
    does what was stored under the first commit before the repository got a remote.
    """
    possible = list(names)
    paths = [folder, *(name for name in possible if is_folder(name) and name != folder)]
    others = [name for name in possible if not is_folder(name)]
    return next((name for name in (*paths, *others) if is_known(name)), possible[0])
