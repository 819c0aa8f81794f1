"""Projects have one name: for every way to write a remote, every checkout, and every transport."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrubjay import Memory, api, projects
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.checkouts import Checkout, absolute, checkout
from scrubjay.service.application import Application
from scrubjay.service.project_names import Place
from scrubjay_shared.errors import DeniedError
from scrubjay_shared.records import EventDraft, EventType

GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "ana",
    "GIT_AUTHOR_EMAIL": "ana@example.org",
    "GIT_COMMITTER_NAME": "ana",
    "GIT_COMMITTER_EMAIL": "ana@example.org",
}


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env={**os.environ, **GIT})


def repository(folder: Path, remote: str | None = None) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", f"begin {folder}")
    if remote is not None:
        git(folder, "remote", "add", "origin", remote)
    return folder


def name_of(folder: Path) -> str:
    """Return the name of a new project in this folder."""
    found = checkout(folder)
    assert found is not None
    return projects.names_of(str(folder), top=found.top, main=found.main, remote=found.remote, first=found.first)[0]


# ---------------------------------------------------------------------------------------------------------- remotes


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:ana/shop.git",
        "git@github.com:ana/shop",
        "git@github.com:/ana/shop.git",
        "github.com:ana/shop",
        "ssh://git@github.com/ana/shop.git",
        "ssh://git@github.com:22/ana/shop",
        "ssh://git@ssh.github.com:443/ana/shop.git",
        "https://github.com/ana/shop.git",
        "https://github.com/ana/shop/",
        "https://ana:ghp_0123456789abcdefghij0123456789abcdef@github.com/ana/shop.git",
        "https://token@www.github.com/Ana/Shop",
        "git://github.com/ana/shop.git",
        " https://GitHub.com./ana//shop.git ",
    ],
)
def test_all_ways_to_write_a_remote_are_one_name(url: str) -> None:
    assert projects.remote_name(url) == "github.com/ana/shop"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@ssh.dev.azure.com:v3/org/proj/repo", "dev.azure.com/org/proj/repo"),
        ("https://org@dev.azure.com/org/proj/_git/repo", "dev.azure.com/org/proj/repo"),
        ("https://gitlab.example.org:8443/team/sub/shop.git", "gitlab.example.org/team/sub/shop"),
        ("ssh://[::1]:2222/srv/shop.git", "::1/srv/shop"),
        ("/srv/git/shop.git", None),
        ("file:///srv/git/shop.git", None),
        ("../shop", None),
        ("C:/work/shop", None),
        ("https://github.com/", None),
        ("", None),
    ],
)
def test_other_hosts_and_what_is_no_address(url: str, name: str | None) -> None:
    assert projects.remote_name(url) == name


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["git@", "https://", "host", ":", "/", "a", ".git", "@", "[", "]", "%00"])).map("".join)
)
@example("https://user:p@ss@host/x")
@example("0\x1f:0")
def test_no_address_breaks_it_and_no_password_is_in_a_name(url: str) -> None:
    name = projects.remote_name(url)

    assert name is None or (name.isprintable() and "@" not in name.split("/")[0] and not name.endswith("/"))


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ('[remote "origin"]\n\turl = git@host:a/b\n\tfetch = x\n', "git@host:a/b"),
        ('[remote "fork"]\nurl=one\n[remote "origin"]\nurl = "two ; not a comment" # one\n', "two ; not a comment"),
        ('[remote "b"]\nurl = first\n[remote "a"]\nurl = second\n', "first"),
        ('[core]\nurl = not a remote\n[branch "main"]\nremote = origin\n', None),
        ('[REMOTE "origin"] URL = x\n', "x"),
        ('[remote "origin"]\nurl =\n', None),
        ("", None),
        ("\0\x01[remote", None),
    ],
)
def test_the_remote_that_names_a_project_is_read_from_the_configuration(config: str, url: str | None) -> None:
    assert projects.remote_url(config) == url


# -------------------------------------------------------------------------------------------------------- checkouts


def test_worktrees_clones_and_moved_checkouts_are_one_project(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", "git@github.com:ana/shop.git")
    git(shop, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "shop-fix"))
    (shop / "src" / "deep").mkdir(parents=True)
    clone = repository(tmp_path / "elsewhere" / "other-name", "https://github.com/ana/shop")

    assert {name_of(each) for each in (shop, shop / "src" / "deep", tmp_path / "shop-fix", clone)} == {
        "github.com/ana/shop"
    }
    branches = [found.branch for each in (shop, tmp_path / "shop-fix") if (found := checkout(each))]
    assert branches == ["main", "fix"]
    moved = shop.rename(tmp_path / "moved")
    assert name_of(moved) == "github.com/ana/shop"


def test_without_a_remote_the_first_commit_names_the_project(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    for number in range(3):
        git(shop, "commit", "-q", "--allow-empty", "-m", str(number))
    git(tmp_path, "clone", "-q", str(shop), "copy")  # its remote is a folder of this machine
    other = repository(tmp_path / "other")

    assert name_of(shop) == name_of(tmp_path / "copy")
    assert name_of(shop).startswith(projects.FIRST_COMMIT)
    assert name_of(other) != name_of(shop)
    (shop / ".git" / "logs" / "HEAD").unlink()  # as git does after three months
    assert name_of(shop) == name_of(tmp_path / "copy")


@pytest.mark.parametrize(
    "broken",
    [
        lambda git_path: git_path.write_text("gitdir: /nowhere/at/all"),
        lambda git_path: git_path.write_text(""),
        lambda git_path: git_path.write_bytes(b"\xff\xfe\0" * 100),
        lambda git_path: git_path.mkdir(),
        lambda git_path: git_path.symlink_to(git_path),
    ],
)
def test_a_broken_git_folder_is_none(tmp_path: Path, broken: object) -> None:
    assert callable(broken)
    broken(tmp_path / ".git")

    assert checkout(tmp_path) is None


def test_a_repository_without_commits_is_a_project_by_its_path(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")

    assert checkout(tmp_path) == Checkout(top=str(tmp_path), main=str(tmp_path), remote=None, first=None, branch="main")
    assert name_of(tmp_path) == str(tmp_path)


def test_settings_kept_in_the_home_folder_are_no_project_of_what_lies_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = repository(tmp_path / "ana", "git@github.com:ana/dotfiles")
    (home / "notes").mkdir()
    monkeypatch.setenv("HOME", str(home))

    assert checkout(home / "notes") is None
    assert name_of(home) == "github.com/ana/dotfiles"


def test_a_project_is_named_as_before_where_something_is_stored_under_its_path() -> None:
    names = ["github.com/ana/shop", "/home/ana/shop", "/home/ana/shop/src"]

    def name(*known: str) -> str:
        return projects.chosen(names, "/home/ana/shop/src", set(known).__contains__)

    assert name() == "github.com/ana/shop"
    assert name("/home/ana/shop") == "/home/ana/shop"
    assert name("/home/ana/shop/src", "/home/ana/shop") == "/home/ana/shop/src"
    assert name("github.com/ana/shop", "elsewhere") == "github.com/ana/shop"


def test_a_project_written_as_a_path_is_sent_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert absolute(".") == absolute(Path()) == str(tmp_path)
    assert absolute("~/shop") == str(Path("~/shop").expanduser())
    assert absolute("github.com/ana/shop") == "github.com/ana/shop"


# ------------------------------------------------------------------------------------------------------- transports


@pytest.mark.anyio
async def test_a_folder_means_its_project_to_every_operation_and_caller(service: Application, tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", "git@github.com:ana/shop.git")
    git(shop, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "fix"))
    said = EventDraft(
        agent="a", session_id="s", type=EventType.USER_MESSAGE, text="The cart store is SQLite.", project=str(shop)
    )
    crow = Caller(principal=Principal.AGENT, agent="crow", project=str(tmp_path / "fix"))

    await service.call(PERSON, "ingest", api.IngestRequest(events=(said,)))
    await service.indexed()
    for caller, project in [
        (PERSON, str(shop)),
        (PERSON, str(tmp_path / "fix")),
        (PERSON, "github.com/ana/shop"),
        (crow, None),
        (crow, str(shop)),
        (crow, "github.com/ana/shop"),
    ]:
        found = await service.call(caller, "events", api.EventsRequest(project=project))
        assert [event.project for event in found.events] == ["github.com/ana/shop"], (caller, project)
        assert found.notes == ()
    with pytest.raises(DeniedError):
        await service.call(crow, "events", api.EventsRequest(project=str(tmp_path)))
    here = await service.project_names.place(str(tmp_path / "fix"))
    assert here == Place(project="github.com/ana/shop", branch="fix")


@pytest.mark.anyio
async def test_what_was_stored_under_a_path_stays_readable_and_is_added_to(
    service: Application, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    said = EventDraft(agent="a", session_id="s", type=EventType.USER_MESSAGE, text="Before git.", project=str(folder))
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said,)))
    await service.indexed()

    folder.rmdir()
    repository(folder, "git@github.com:ana/shop.git")
    later = EventDraft(agent="a", session_id="s", type=EventType.USER_MESSAGE, text="After it.", project=str(folder))
    await service.call(PERSON, "ingest", api.IngestRequest(events=(later,)))

    found = await service.call(PERSON, "events", api.EventsRequest(project=str(folder)))
    assert [event.text for event in found.events] == ["Before git.", "After it."]
    assert {event.project for event in found.events} == {str(folder)}


def test_the_python_interface_takes_a_folder(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", "git@github.com:ana/shop.git")
    with Memory(tmp_path / "m.db", project=shop) as memory:
        memory.add("The cart store is SQLite.")
        other = repository(tmp_path / "other")

    with Memory(tmp_path / "m.db", project="github.com/ana/shop") as memory:
        assert [entry.memory.resource_id for entry in memory.list().entries] == ["github.com/ana/shop"]
    with Memory(tmp_path / "m.db", project=other) as memory:
        assert memory.list().entries == ()
