"""Where scrubjay keeps its files and how it is reached: flags > `SCRUBJAY_*` > `config.toml` > defaults.

Reads one small file and the environment it is given; creates folders only in `ensure_dirs`. Every command loads this
module, so what costs start-up time (platformdirs, tomllib) is imported only where it is needed.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay import setting_values as values
from scrubjay.accounts import MAIN, NAMES, folder_of
from scrubjay.folders import HOOK_DOOR_NAME, STORE_NAME, xdg
from scrubjay.model_choice import Origin
from scrubjay.policy.writing import WriterPolicy
from scrubjay.setting_values import HTTP_PREFIX, MAX_SOCKET_PATH_BYTES, PATHS
from scrubjay_io import private_files
from scrubjay_shared.errors import DeniedError, InvalidError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULT_MODEL = "bge-small-en-v1.5"
DEFAULT_RERANKER = "ms-marco-MiniLM-L-12-v2"
NO_MODEL = "none"
"""The value of `model` that means: lexical recall only; the value of `reranker` that means: no reranking."""

LOG_LEVELS = ("debug", "info", "warning", "error")
EMBED_APIS = ("ollama", "openai")
WRITER_SERVERS = ("openai", "anthropic")
"""Writers that are servers: what their wire format is called after."""
WRITER_AGENTS = ("claude", "codex", "gemini", "opencode")
"""Writers that are coding agents, installed and logged in by the person."""
WRITERS = ("none", *WRITER_SERVERS, *WRITER_AGENTS)
WRITER_KEYS = ("writer", "writer_url", "writer_model", "writer_key_env")
"""The settings that say which Writer is asked, and where."""
WRITER_DEFAULTS: Mapping[str, Any] = {
    "writer": "none",
    **dict.fromkeys(WRITER_KEYS[1:], ""),
    "writer_daily_tokens": WriterPolicy().daily_tokens,
    "writer_monthly_tokens": WriterPolicy().monthly_tokens,
}
MAX_TOKENS = 999_999_999  # more than any subscription gives: a typing error, not a wish

MAX_CONFIG_BYTES = 1_048_576  # a settings file is some lines; this bounds what a wrong path can make us read
MAX_THREADS = 64  # beyond any machine this runs on: a typing error, not a wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One installation's settings, all resolved: absolute paths, values checked.

    `grpc_port` is None where there is to be no gRPC, `socket` where there are no Unix sockets; `reranker` is used
    where it is installed; `threads` is how many texts are embedded, or reranked, at once, None for the models' own
    default; `embed_url`, `embed_api` and `embed_key_env` (the *name* of the environment variable that holds the key)
    matter only when `model` begins with `http:`; `writer` and what begins with it say which language model may be asked
    (none, unless the person says so), where it is, and how many tokens it may use; `account` is whose store a command
    means (`accounts`). `origins` says where the value of each key came from; a key that is absent has its default.
    """

    config_path: Path
    data_dir: Path
    state_dir: Path
    models_dir: Path
    host: str
    port: int
    grpc_port: int | None
    socket: Path | None
    model: str
    reranker: str
    recall_weights: Path | None
    threads: int | None
    embed_url: str
    embed_api: str
    embed_key_env: str
    writer: str
    writer_url: str
    writer_model: str
    writer_key_env: str
    writer_daily_tokens: int
    writer_monthly_tokens: int
    log_level: str
    review: str = "risky"
    account: str = MAIN
    origins: Mapping[str, Origin] = field(default_factory=dict)

    @property
    def store_dir(self) -> Path:
        """The folder of the store of the account that is meant; of the main one it is the data folder."""
        return folder_of(self.data_dir, self.account)

    @property
    def store_path(self) -> Path:
        """The SQLite file that holds every memory of the account that is meant."""
        return self.store_dir / STORE_NAME

    @property
    def token_path(self) -> Path:
        """The file with the daemon's bearer token, mode 0600. Who sends it is the person."""
        return self.data_dir / "token"

    @property
    def agent_token_path(self) -> Path:
        """The file with the bearer token of agents, mode 0600."""
        return self.data_dir / "agent_token"

    @property
    def hook_door_path(self) -> Path:
        """The file with the token of hooks and the daemon's address, mode 0600. Who sends it is an agent's host."""
        return self.data_dir / HOOK_DOOR_NAME

    @property
    def log_path(self) -> Path:
        """The daemon's log."""
        return self.state_dir / "daemon.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting: its key in `config.toml`, what it means, what it may be, and how its raw value is read.

    The flag's value arrives under `key`, the environment's as `SCRUBJAY_` + the key in upper case. `read` returns the
    value or raises ValueError; it gets a str from the environment, a TOML value from the file.
    """

    key: str
    meaning: str
    allowed: str
    read: Callable[[object], Any]

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"SCRUBJAY_{self.key.upper()}"


def load(
    flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None, *, platform: str = sys.platform
) -> Settings:
    """Return the settings in force. Keys of `flags` are those of `OPTIONS`, and `config`; None means not given.

    `SCRUBJAY_HOME` moves everything (config, data, state, models) under one folder; `SCRUBJAY_CONFIG`, or the flag
    `config`, names another config file, which must exist. An empty environment variable counts as unset. Paths are
    absolute or begin with `~`; only a flag may be relative, to the working folder. Raises InvalidError, naming the
    source, the key and what is allowed.
    """
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    environ = {} if environ is None else environ
    if unknown := given.keys() - OPTIONS.keys() - {"config"}:
        raise InvalidError(f"there is no setting called {min(unknown)!r}", hint=f"settings: {', '.join(OPTIONS)}")
    folders = _folders(environ, platform)
    config_path, named = _config_path(given, environ, folders["config"])
    config = read_config(config_path, required=named)

    chosen: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for option in OPTIONS.values():
        if option.key in given:
            chosen[option.key] = _checked(option, _from_cwd(given[option.key], option), f"--{_dashed(option.key)}")
            origins[option.key] = Origin.FLAG
        elif environ.get(option.variable):
            chosen[option.key] = _checked(option, environ[option.variable], option.variable)
            origins[option.key] = Origin.ENVIRONMENT
        elif option.key in config:
            chosen[option.key] = _checked(option, config[option.key], f"{config_path}: {option.key}")
            origins[option.key] = Origin.FILE

    data_dir = chosen.get("data_dir", folders["data"])
    defaults = {
        "data_dir": data_dir,
        "state_dir": folders["state"],
        "models_dir": folders["models"],
        "socket": None if platform == "win32" else _socket_path(data_dir),
        "host": "127.0.0.1",
        "port": 7377,
        "grpc_port": None,
        "model": DEFAULT_MODEL,
        "reranker": DEFAULT_RERANKER,
        "recall_weights": None,
        "threads": None,
        "embed_url": "",
        "embed_api": "ollama",
        "embed_key_env": "",
        **WRITER_DEFAULTS,
        "log_level": "info",
        "review": "risky",
        "account": MAIN,
    }
    settings = Settings(config_path=config_path, origins=origins, **(defaults | chosen))
    if settings.model.startswith(HTTP_PREFIX) and not settings.embed_url:
        raise InvalidError(
            f"the model {settings.model} needs the address of its server",
            hint="set embed_url in config.toml (SCRUBJAY_EMBED_URL) to it, as http://127.0.0.1:11434",
        )
    return _checked_writer(settings)


def read_config(path: Path, *, required: bool = False) -> dict[str, object]:
    """Return the keys and raw values of a config file; {} when there is no file and none is required.

    A byte-order mark is tolerated. Raises InvalidError for what is not UTF-8, not TOML, or not a setting.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
    except FileNotFoundError:
        if required:
            raise InvalidError(
                f"the config file {path} does not exist", hint="create it, or leave out --config and SCRUBJAY_CONFIG"
            ) from None
        return {}
    except OSError as e:
        raise InvalidError(f"{path} cannot be read ({e.strerror})", hint="check its permissions") from e
    if len(raw) > MAX_CONFIG_BYTES:
        raise InvalidError(
            f"{path} is larger than {MAX_CONFIG_BYTES} bytes, so it is not a config file",
            hint="name a TOML file with --config or SCRUBJAY_CONFIG",
        )
    return _parsed(raw, path)


def assign(path: Path, assigned: Mapping[str, str | int | None]) -> None:
    """Set keys of a config file, or take out those that are None; the file is created (0600) when absent.

    All else stays: the other lines and their order, comments behind a value, the file's permissions. The new file
    replaces the old one in one step. Raises InvalidError for a key or value that `load` would refuse, and for a file
    that is not a valid config before or after the change; then the file is untouched.
    """
    for key, value in assigned.items():
        if key not in OPTIONS:
            raise InvalidError(f"there is no setting called {key!r}", hint=f"settings: {', '.join(OPTIONS)}")
        if value is not None:
            _checked(OPTIONS[key], value, key)
    wanted: dict[str, object] = {**read_config(path), **assigned}
    exists = path.exists()
    lines = path.read_bytes().decode("utf-8-sig").split("\n") if exists else [""]
    for key, value in assigned.items():
        _put(lines, key, value)
    data = "\n".join(lines).encode()
    if _parsed(data, path) != {key: value for key, value in wanted.items() if value is not None}:
        raise InvalidError(f"{path} has a value over several lines", hint="put it on one line, or change it there")
    # A config that is a link into a dotfiles folder stays one.
    private_files.write(path.resolve(), data, stat.S_IMODE(path.stat().st_mode) if exists else private_files.MODE)


def writer_assigned(settings: Settings, assigned: Mapping[str, str]) -> Settings:
    """Return settings with another Writer, of which they say no more than what is `assigned`.

    Raises InvalidError for a value that `load` would refuse.
    """
    given = {key: _checked(OPTIONS[key], value, key) for key, value in assigned.items() if value}
    return _checked_writer(replace(settings, **(dict.fromkeys(WRITER_KEYS, "") | given)))


def writer_reread(settings: Settings) -> Settings:
    """Return settings with what their file says of the Writer by now; flags and the environment outweigh it as ever.

    Raises InvalidError for a file that `load` would refuse.
    """
    config = read_config(settings.config_path)
    of_file = [key for key in WRITER_DEFAULTS if settings.origins.get(key, Origin.FILE) is Origin.FILE]
    source = settings.config_path
    given = {key: _checked(OPTIONS[key], config[key], f"{source}: {key}") for key in of_file if key in config}
    return _checked_writer(replace(settings, **({key: WRITER_DEFAULTS[key] for key in of_file} | given)))


def ensure_dirs(settings: Settings) -> None:
    """Create the folders that are missing, for their owner alone (0700). A folder that exists is left as it is.

    The socket's folder outside `data_dir` lies where other users may write, so one that is not ours alone is refused.
    Raises UnavailableError when a folder cannot be made, DeniedError when the socket's folder is not safe.
    """
    folders = [settings.data_dir, settings.state_dir, settings.models_dir]
    if settings.socket is not None:
        folders.append(settings.socket.parent)
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as e:
            raise UnavailableError(
                f"the folder {folder} cannot be created ({e.strerror})",
                hint="SCRUBJAY_HOME moves everything to another folder",
            ) from e
    if settings.socket is not None and settings.socket.parent == _shared_socket_dir():
        found = settings.socket.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise DeniedError(
                f"other users may write to {settings.socket.parent}, where the socket would be",
                hint="set socket (SCRUBJAY_SOCKET) to a path in a folder of your own",
            )


def _checked_writer(settings: Settings) -> Settings:
    """Return the settings if what they say of the Writer is whole. Raises InvalidError."""
    if settings.writer in WRITER_SERVERS and not (settings.writer_url and settings.writer_model):
        # No address is taken for granted: what is said to agents goes nowhere that the person has not written down.
        raise InvalidError(
            f"the writer {settings.writer} needs the address of its server and the name of a model",
            hint="set writer_url and writer_model in config.toml (SCRUBJAY_WRITER_URL, SCRUBJAY_WRITER_MODEL)",
        )
    return settings


def _put(lines: list[str], key: str, value: str | int | None) -> None:
    """Set a key in the lines of a config file, or take it out where the value is None; a comment behind it stays."""
    at = next((at for at, line in enumerate(lines) if line.split("=", 1)[0].strip(" \t\"'") == key), None)
    end = "\r" if lines[0].endswith("\r") else ""
    new = "" if value is None else f"{key} = {value if isinstance(value, int) else _quoted(value)}"
    if at is not None:
        comment = _comment(lines[at].removesuffix("\r"))
        lines[at : at + 1] = [f"{new}{comment}".lstrip() + end] if new or comment else []
    elif new:
        if lines[-1]:
            lines[-1] += end
            lines.append("")
        lines.insert(-1, new + end)


def _comment(line: str) -> str:
    """Return the comment behind the value of a line, with the spaces before it; "" where there is none."""
    import tomllib  # noqa: PLC0415 as in `_parsed`

    for at in (at for at, character in enumerate(line) if character == "#"):
        try:
            tomllib.loads(line[:at])
        except tomllib.TOMLDecodeError:  # it stands inside the value
            continue
        return line[len(line[:at].rstrip()) :]
    return ""


def _parsed(raw: bytes, path: Path) -> dict[str, object]:
    import tomllib  # noqa: PLC0415 10 ms, and most installations have no config file

    try:
        config = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as e:
        raise InvalidError(f"{path} is not UTF-8 (byte {e.start})", hint="save the file as UTF-8") from e
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise InvalidError(f"{path} is not TOML: {e}", hint='a line is: key = "text", or: key = 1') from e
    for key in config:
        if key not in OPTIONS:
            raise InvalidError(f"{path}: there is no setting called {key!r}", hint=f"settings: {', '.join(OPTIONS)}")
    return config


def _folders(environ: Mapping[str, str], platform: str) -> dict[str, Path]:
    if home := environ.get("SCRUBJAY_HOME"):
        try:
            base = values.path(home)
        except ValueError as e:
            raise InvalidError(f"SCRUBJAY_HOME: {e}", hint=f"allowed: {PATHS}") from e
        return {"config": base, "data": base / "data", "state": base / "state", "models": base / "models"}
    if platform in {"darwin", "win32"}:
        from platformdirs import PlatformDirs  # noqa: PLC0415 40 ms; elsewhere the XDG rules are the five lines below

        dirs = PlatformDirs("scrubjay", appauthor=False)
        data = dirs.user_data_path
        return {"config": dirs.user_config_path, "data": data, "state": dirs.user_log_path, "models": data / "models"}

    data = Path(xdg("XDG_DATA_HOME", ".local/share", environ))
    return {
        "config": Path(xdg("XDG_CONFIG_HOME", ".config", environ)),
        "data": data,
        "state": Path(xdg("XDG_STATE_HOME", ".local/state", environ)),
        "models": data / "models",
    }


def _config_path(given: Mapping[str, object], environ: Mapping[str, str], folder: Path) -> tuple[Path, bool]:
    """Return the config file's path, and whether the user named it."""
    for source, value in (("--config", given.get("config")), ("SCRUBJAY_CONFIG", environ.get("SCRUBJAY_CONFIG"))):
        if value:
            try:
                return values.path(os.path.abspath(values.expanded(value)) if source == "--config" else value), True  # noqa: PTH100 resolve() would follow links
            except ValueError as e:
                raise InvalidError(f"{source}: {e}", hint=f"allowed: {PATHS}") from e
    return folder / "config.toml", False


def _from_cwd(value: object, option: Option) -> object:
    """Make a path given as a flag absolute: a person at a prompt means the folder they stand in."""
    if option.read not in {values.path, values.socket} or not isinstance(value, str | Path) or not str(value):
        return value
    return os.path.abspath(values.expanded(value))  # noqa: PTH100 resolve() would follow links


def _checked(option: Option, value: object, source: str) -> Any:
    try:
        return option.read(value)
    except ValueError as e:
        raise InvalidError(f"{source}: {e}", hint=f"allowed: {option.allowed}") from e


def _socket_path(data_dir: Path) -> Path:
    """Return the socket's default path: in the data folder, or where that is too long, short and derived from it.

    Not in XDG_RUNTIME_DIR or TMPDIR: a login shell, a hook and cron must all meet the daemon, and these differ there.
    """
    path = data_dir / "scrubjay.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    import hashlib  # noqa: PLC0415 4 ms, for the few whose data folder has a long path

    return _shared_socket_dir() / f"{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}.sock"


def _shared_socket_dir() -> Path:
    uid = os.getuid() if sys.platform != "win32" else 0
    return Path(f"/tmp/scrubjay-{uid}")  # noqa: S108 ensure_dirs refuses a folder there that is not ours alone


def _dashed(key: str) -> str:
    return key.replace("_", "-")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        raise InvalidError("a setting must not hold control characters", hint="remove line breaks and tabs")
    return f'"{escaped}"'


OPTIONS: dict[str, Option] = {
    option.key: option
    for option in (
        Option(key="data_dir", meaning="the store, the token and the socket", allowed=PATHS, read=values.path),
        Option(key="state_dir", meaning="logs", allowed=PATHS, read=values.path),
        Option(key="models_dir", meaning="embedding and reranking models", allowed=PATHS, read=values.path),
        Option(
            key="host",
            meaning="the address the daemon listens on",
            allowed="127.0.0.1 (or another 127.*), ::1, localhost",
            read=values.loopback,
        ),
        Option(
            key="port",
            meaning="the port the daemon listens on; 0 takes a free one",
            allowed="0 to 65535",
            read=values.whole(0, 65_535),
        ),
        Option(
            key="grpc_port",
            meaning="the port of the gRPC interface, where its extra is installed; 0 takes a free one",
            allowed="0 to 65535",
            read=values.whole(0, 65_535),
        ),
        Option(
            key="socket",
            meaning="the Unix socket the daemon listens on",
            allowed=f"{PATHS}, at most {MAX_SOCKET_PATH_BYTES} bytes",
            read=values.socket,
        ),
        Option(
            key="model",
            meaning="the embedding model",
            allowed=f"{DEFAULT_MODEL}, another installed model's name, {HTTP_PREFIX}<model>, or {NO_MODEL}",
            read=values.model,
        ),
        Option(
            key="reranker",
            meaning="the reranking model, used where it is installed",
            allowed=f"{DEFAULT_RERANKER}, or {NO_MODEL}",
            read=values.local_model,
        ),
        Option(
            key="recall_weights",
            meaning="weights of recall that scrubjay bench fit wrote, in place of the default's",
            allowed=PATHS,
            read=values.path,
        ),
        Option(
            key="threads",
            meaning="texts embedded or reranked at once",
            allowed=f"1 to {MAX_THREADS}",
            read=values.whole(1, MAX_THREADS),
        ),
        Option(
            key="embed_url",
            meaning="address of the embeddings server, for a model that begins with http:",
            allowed="http://… or https://…, without a password",
            read=values.url,
        ),
        Option(
            key="embed_api",
            meaning="what that server speaks",
            allowed=" or ".join(EMBED_APIS),
            read=values.one_of(EMBED_APIS),
        ),
        Option(
            key="embed_key_env",
            meaning="the environment variable that holds that server's key",
            allowed="the name of an environment variable",
            read=values.variable,
        ),
        Option(
            key="writer",
            meaning="the language model that background jobs and `scrubjay ask` may ask",
            allowed=", ".join(WRITERS),
            read=values.one_of(WRITERS),
        ),
        Option(
            key="writer_url",
            meaning="address of the writer's server; prompts are sent there",
            allowed="https://…, or http:// to this machine, without a password",
            read=values.private_url,
        ),
        Option(key="writer_model", meaning="the writer's model", allowed="a name that it knows", read=values.name),
        Option(
            key="writer_key_env",
            meaning="the environment variable that holds the writer's key",
            allowed="the name of an environment variable",
            read=values.variable,
        ),
        Option(
            key="writer_daily_tokens",
            meaning="the most tokens, read and written, that the writer may use in a day",
            allowed=f"0 to {MAX_TOKENS}",
            read=values.whole(0, MAX_TOKENS),
        ),
        Option(
            key="writer_monthly_tokens",
            meaning="the most tokens, read and written, that the writer may use in a month",
            allowed=f"0 to {MAX_TOKENS}",
            read=values.whole(0, MAX_TOKENS),
        ),
        Option(
            key="log_level", meaning="what the log holds", allowed=", ".join(LOG_LEVELS), read=values.one_of(LOG_LEVELS)
        ),
        Option(
            key="review",
            meaning="which new memories wait for scrubjay review: none, what may do harm, or all you did not add",
            allowed="off, risky, all",
            read=values.one_of(("off", "risky", "all")),
        ),
        Option(
            key="account",
            meaning="the account whose store commands mean, where a home has several; the daemon serves them all",
            allowed=NAMES,
            read=values.account,
        ),
    )
}

# A setting without an option could never be set, an option without a setting never be read.
if OPTIONS.keys() != {field.name for field in fields(Settings)} - {"config_path", "origins"}:
    raise TypeError("OPTIONS and Settings differ")
