"""Settings: who wins, what is refused, where files go, and what it costs to know."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrubjay import settings
from scrubjay_shared.errors import DeniedError, InvalidError, UnavailableError

# key: (from the environment, from config.toml, from a flag), each as its source would write it, with what must come out
CASES: dict[str, list[tuple[str, str, object, object]]] = {
    "data_dir": [("/env/d", '"/file/d"', "/flag/d", Path)],
    "state_dir": [("/env/s", '"/file/s"', "/flag/s", Path)],
    "models_dir": [("/env/m", '"/file/m"', "/flag/m", Path)],
    "host": [("127.0.0.2", '"::1"', "localhost", str)],
    "port": [("7001", "7002", 7003, int)],
    "grpc_port": [("7001", "7002", 7003, int)],
    "socket": [("/env/x.sock", '"/file/x.sock"', "/flag/x.sock", Path)],
    "model": [("none", '"other-model"', "bge-small-en-v1.5", str)],
    "recall_weights": [("/env/weights.json", '"/file/weights.json"', "/flag/weights.json", Path)],
    "reranker": [("none", '"other-model"', "ms-marco-MiniLM-L-12-v2", str)],
    "threads": [("1", "2", 3, int)],
    "embed_url": [("http://127.0.0.1:1", '"http://127.0.0.1:2"', "http://127.0.0.1:3", str)],
    "embed_api": [("openai", '"openai"', "ollama", str)],
    "embed_key_env": [("KEY_A", '"KEY_B"', "KEY_C", str)],
    "writer": [("openai", '"anthropic"', "openai", str)],
    "writer_url": [("http://127.0.0.1:1", '"http://127.0.0.1:2"', "http://127.0.0.1:3", str)],
    "writer_model": [("model-a", '"model-b"', "model-c", str)],
    "writer_key_env": [("KEY_A", '"KEY_B"', "KEY_C", str)],
    "writer_daily_tokens": [("1", "2", 3, int)],
    "writer_monthly_tokens": [("1", "2", 3, int)],
    "log_level": [("debug", '"warning"', "error", str)],
    "review": [("off", '"all"', "off", str)],
    "account": [("work", '"club"', "choir", str)],
}

ALSO = {"writer": {"SCRUBJAY_WRITER_URL": "http://127.0.0.1:1", "SCRUBJAY_WRITER_MODEL": "model-a"}}
"""What a setting needs beside it."""


def home(tmp_path: Path, config: str = "") -> dict[str, str]:
    if config:
        (tmp_path / "config.toml").write_text(config, encoding="utf-8")
    return {"SCRUBJAY_HOME": str(tmp_path)}


def test_every_setting_has_a_case_here() -> None:
    assert set(settings.OPTIONS) == set(CASES)


@pytest.mark.parametrize("key", CASES)
def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(key: str, tmp_path: Path) -> None:
    [(env, toml, flag, kind)] = CASES[key]
    variable = f"SCRUBJAY_{key.upper()}"
    plain = home(tmp_path) | ALSO.get(key, {})
    default = getattr(settings.load({}, plain), key)

    with_file = home(tmp_path, f"{key} = {toml}\n") | ALSO.get(key, {})
    from_file = getattr(settings.load({}, with_file), key)
    from_env = getattr(settings.load({}, with_file | {variable: env}), key)
    from_flag = getattr(settings.load({key: flag}, with_file | {variable: env}), key)

    assert kind(toml.strip('"')) == from_file  # type: ignore[operator]
    assert kind(env) == from_env  # type: ignore[operator]
    assert kind(flag) == from_flag  # type: ignore[operator]
    assert default not in (from_env, from_file)


def test_a_flag_that_was_not_given_and_an_empty_variable_count_as_unset(tmp_path: Path) -> None:
    environ = home(tmp_path, "port = 7002\n") | {"SCRUBJAY_PORT": ""}

    assert settings.load({"port": None}, environ).port == 7002


def test_the_defaults_need_nothing_but_a_home(tmp_path: Path) -> None:
    found = settings.load({}, home(tmp_path))

    assert found.data_dir == tmp_path / "data"
    assert found.store_path == tmp_path / "data" / "memory.db"
    assert found.token_path == tmp_path / "data" / "token"
    assert found.state_dir == tmp_path / "state"
    assert found.log_path == tmp_path / "state" / "daemon.log"
    assert found.models_dir == tmp_path / "models"
    assert found.config_path == tmp_path / "config.toml"
    assert (found.host, found.port, found.model) == ("127.0.0.1", 7377, "bge-small-en-v1.5")


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        ({"host": "0.0.0.0"}, {}),  # noqa: S104 the very thing that must be refused
        ({"host": "192.168.1.4"}, {}),
        ({"host": "127.0.0.256"}, {}),
        ({"host": "127.0.0.1.example.org"}, {}),
        ({"port": 65_536}, {}),
        ({"port": -1}, {}),
        ({"port": True}, {}),
        ({"port": 7377.0}, {}),
        ({"nonsense": 1}, {}),
        ({}, {"SCRUBJAY_PORT": "lots"}),
        ({}, {"SCRUBJAY_PORT": "９"}),
        ({}, {"SCRUBJAY_PORT": "9" * 5000}),
        ({}, {"SCRUBJAY_DATA_DIR": "relative/path"}),
        ({}, {"SCRUBJAY_DATA_DIR": "~nobody-by-this-name/x"}),
        ({}, {"SCRUBJAY_SOCKET": "/" + "x" * 200}),
        ({}, {"SCRUBJAY_MODEL": "../../etc"}),
        ({}, {"SCRUBJAY_MODEL": "http:"}),
        ({}, {"SCRUBJAY_MODEL": "http:nomic"}),  # no embed_url
        ({}, {"SCRUBJAY_LOG_LEVEL": "loud"}),
        ({}, {"SCRUBJAY_THREADS": "0"}),
        ({}, {"SCRUBJAY_EMBED_URL": "ftp://127.0.0.1"}),
        ({}, {"SCRUBJAY_EMBED_API": "soap"}),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_is_allowed(
    flags: dict[str, object], environ: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(InvalidError) as caught:
        settings.load(flags, home(tmp_path) | environ)

    assert caught.value.hint


def test_a_relative_home_is_refused() -> None:
    with pytest.raises(InvalidError, match="SCRUBJAY_HOME"):
        settings.load({}, {"SCRUBJAY_HOME": "here"})


def test_a_key_pasted_where_a_variables_name_belongs_is_not_repeated(tmp_path: Path) -> None:
    for variable, value in (("SCRUBJAY_EMBED_KEY_ENV", "sk-not-a-name"), ("SCRUBJAY_EMBED_URL", "http://me:pw@h")):
        with pytest.raises(InvalidError) as caught:
            settings.load({}, home(tmp_path) | {variable: value})

        assert value not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (b"prot = 7377\n", "prot"),
        (b"port = 70000\n", "port"),
        (b'port = "many"\n', "port"),
        (b"data_dir = 3\n", "data_dir"),
        (b'host = "0.0.0.0"\n', "host"),
        (b"[port]\nx = 1\n", "port"),
        (b"port 7377\n", "config.toml"),
        (b"port = 1\nport = 2\n", "config.toml"),
        (b"\xff\xfe\x00", "config.toml"),
        (b"a = " + b"[" * 20_000, "config.toml"),
        (b"#" * (settings.MAX_CONFIG_BYTES + 1), "config.toml"),
    ],
)
def test_a_bad_config_file_is_named_with_its_key(config: bytes, named: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(config)

    with pytest.raises(InvalidError) as caught:
        settings.load({}, home(tmp_path))

    assert str(tmp_path / "config.toml") in str(caught.value)
    assert named in str(caught.value)
    assert caught.value.hint


def test_a_config_file_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbfport = 7399\r\n")

    assert settings.load({}, home(tmp_path)).port == 7399


def test_a_config_folder_in_the_files_place_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()

    with pytest.raises(InvalidError, match=r"config\.toml"):
        settings.load({}, home(tmp_path))


def test_a_named_config_file_is_used_and_must_exist(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("port = 7398\n", encoding="utf-8")

    by_flag = settings.load({"config": str(other)}, home(tmp_path))
    by_variable = settings.load({}, home(tmp_path) | {"SCRUBJAY_CONFIG": str(other)})

    assert by_flag.port == by_variable.port == 7398
    assert by_flag.config_path == other
    with pytest.raises(InvalidError, match="does not exist"):
        settings.load({"config": str(tmp_path / "absent.toml")}, home(tmp_path))


def test_a_relative_path_as_a_flag_is_taken_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert settings.load({"data_dir": "here"}, home(tmp_path)).data_dir == tmp_path / "here"


def test_a_tilde_is_the_home_folder_and_never_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    assert settings.load({"data_dir": "~/d"}, {}).data_dir == tmp_path / "d"
    assert settings.load({}, {"SCRUBJAY_HOME": "~/h"}).data_dir == tmp_path / "h" / "data"


def test_xdg_variables_place_the_folders_and_relative_ones_are_ignored() -> None:
    environ = {"HOME": "/h", "XDG_DATA_HOME": "/xd", "XDG_CONFIG_HOME": "/xc", "XDG_STATE_HOME": "relative"}

    found = settings.load({}, environ, platform="linux")

    assert found.data_dir == Path("/xd/scrubjay")
    assert found.models_dir == Path("/xd/scrubjay/models")
    assert found.config_path == Path("/xc/scrubjay/config.toml")
    assert found.state_dir == Path("/h/.local/state/scrubjay")


@pytest.mark.skipif(sys.platform != "linux", reason="compares the two on the platform that has both")
def test_the_folders_on_linux_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from platformdirs import PlatformDirs  # noqa: PLC0415 only this comparison needs it

    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    theirs = PlatformDirs("scrubjay", appauthor=False)

    ours = settings.load({}, os.environ, platform="linux")

    assert ours.data_dir == theirs.user_data_path
    assert ours.config_path.parent == theirs.user_config_path
    assert ours.state_dir == theirs.user_state_path


def test_other_platforms_take_their_folders_from_platformdirs() -> None:
    windows = settings.load({}, {}, platform="win32")

    assert windows.data_dir.name == "scrubjay"
    assert windows.socket is None


def test_the_socket_stands_in_the_data_folder_or_where_its_path_is_short_enough() -> None:
    near = settings.load({"data_dir": "/d"}, {"HOME": "/h"}, platform="linux")
    far = settings.load({"data_dir": "/" + "é" * 60}, {"HOME": "/h"}, platform="linux")
    other = settings.load({"data_dir": "/" + "ü" * 60}, {"HOME": "/h"}, platform="linux")

    assert near.socket == Path("/d/scrubjay.sock")
    assert far.socket is not None
    assert len(os.fsencode(far.socket)) <= settings.MAX_SOCKET_PATH_BYTES
    assert far.socket != other.socket


def test_folders_are_made_for_their_owner_alone_and_existing_ones_left_alone(tmp_path: Path) -> None:
    found = settings.load({"models_dir": str(tmp_path / "shared")}, home(tmp_path))
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared").chmod(0o755)

    settings.ensure_dirs(found)
    settings.ensure_dirs(found)

    assert stat.S_IMODE(found.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(found.state_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(found.models_dir.stat().st_mode) == 0o755


def test_a_file_in_a_folders_place_is_reported_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine", encoding="utf-8")

    with pytest.raises(UnavailableError) as caught:
        settings.ensure_dirs(settings.load({}, home(tmp_path)))

    assert "SCRUBJAY_HOME" in caught.value.hint
    assert (tmp_path / "data").read_text(encoding="utf-8") == "mine"


def test_a_socket_folder_that_others_may_enter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 120)
    monkeypatch.setattr(settings, "_shared_socket_dir", lambda: tmp_path / "s")
    found = settings.load({"data_dir": str(deep)}, home(tmp_path), platform="linux")
    (tmp_path / "s").mkdir()
    (tmp_path / "s").chmod(0o777)

    with pytest.raises(DeniedError):
        settings.ensure_dirs(found)

    (tmp_path / "s").chmod(0o700)
    settings.ensure_dirs(found)


def test_assigning_a_key_keeps_every_other_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# my notes\n# model = "old"\nport = 7400 # odd\nmodel = "none"', encoding="utf-8")

    settings.assign(path, {"model": "bge-small-en-v1.5"})
    settings.assign(path, {"threads": 1})

    expected = '# my notes\n# model = "old"\nport = 7400 # odd\nmodel = "bge-small-en-v1.5"\nthreads = 1\n'
    assert expected == path.read_text(encoding="utf-8")
    assert settings.load({}, home(tmp_path)).threads == 1
    assert [path] == list(tmp_path.iterdir())


def test_assigning_makes_a_private_file_and_writes_through_a_link(tmp_path: Path) -> None:
    fresh, target, link = tmp_path / "c" / "config.toml", tmp_path / "dotfile", tmp_path / "link.toml"
    target.write_text("port = 1\n", encoding="utf-8")
    link.symlink_to(target)

    settings.assign(fresh, {"model": "none"})
    settings.assign(link, {"port": 2})

    assert stat.S_IMODE(fresh.stat().st_mode) == 0o600
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "port = 2\n"


def test_assigning_keeps_comments_behind_values_line_ends_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(
        b'# mine\r\nwriter = "none"  # not yet\r\n writer_url = "http://localhost/#a" # "here"\r\nport = 1\r\n'
        b'writer_model = "x"\r\nwriter_key_env = "KEY" # of last year\r\n'
    )
    path.chmod(0o644)

    settings.assign(
        path, {"writer": "claude", "writer_url": "http://localhost/b", "writer_model": None, "writer_key_env": None}
    )

    assert path.read_bytes() == (
        b'# mine\r\nwriter = "claude"  # not yet\r\nwriter_url = "http://localhost/b" # "here"\r\nport = 1\r\n'
        b"# of last year\r\n"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_value_over_several_lines_is_left_to_the_person(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('log_level = """\\\n  info"""\nmodel = "none"\n', encoding="utf-8")

    with pytest.raises(InvalidError):
        settings.assign(path, {"log_level": "debug"})
    settings.assign(path, {"model": "bge-small-en-v1.5"})

    assert path.read_text(encoding="utf-8") == 'log_level = """\\\n  info"""\nmodel = "bge-small-en-v1.5"\n'


def test_what_the_file_says_of_the_writer_is_read_again_and_the_environment_outweighs_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    environ = home(tmp_path) | {"SCRUBJAY_WRITER_MODEL": "mine"}
    found = settings.load({}, environ)
    path = found.config_path
    settings.assign(path, {"writer": "claude", "writer_model": "theirs", "writer_daily_tokens": 7, "port": 1})

    fresh = settings.writer_reread(found)

    assert (fresh.writer, fresh.writer_model, fresh.writer_daily_tokens) == ("claude", "mine", 7)
    assert fresh.port == found.port, "nothing else is read"
    settings.assign(path, {"writer": None, "writer_daily_tokens": None})
    off = settings.writer_reread(fresh)
    assert (off.writer, off.writer_daily_tokens) == (found.writer, found.writer_daily_tokens)


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        ("port = 1\n", "port", 70_000),
        ("port = 1\n", "nonsense", 1),
        ("port = 1\n", "embed_url", 'http://h/\nport = "x"'),
        ("port = not toml\n", "model", "none"),
        ("nonsense = 1\n", "model", "none"),
    ],
)
def test_an_assignment_that_load_would_refuse_changes_nothing(
    config: str, key: str, value: Any, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(config, encoding="utf-8")

    with pytest.raises(InvalidError):
        settings.assign(path, {key: value})

    assert config == path.read_text(encoding="utf-8")
    assert [path] == list(tmp_path.iterdir())


def test_a_quoted_value_comes_back_as_it_went_in(tmp_path: Path) -> None:
    odd = '/srv/a "quoted" \\ folder é'

    settings.assign(tmp_path / "config.toml", {"data_dir": odd})

    assert settings.load({}, home(tmp_path)).data_dir == Path(odd)


def test_loading_settings_imports_nothing_slow(tmp_path: Path) -> None:
    code = "import os, sys; from scrubjay import settings; settings.load({}, os.environ); print(*sys.modules)"
    environ = os.environ | {"SCRUBJAY_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)

    slow = {"platformdirs", "tomllib", "numpy", "asyncio", "msgspec", "sqlite3"}
    assert set() == slow & set(run.stdout.split())
