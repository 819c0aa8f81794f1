"""`scrubjay-hook HOST EVENT`: hands the daemon what a coding agent reports, prints nothing, and always exits 0.

Theory of operation. An agent starts this process for every event and waits for it, so it imports next to nothing:
`socket` and `json` alone would double what the interpreter takes. It reads the payload from standard input, sends it
to the daemon as it came, and ends. Where the daemon is away, or does not answer in time, or the payload is large, a
child that nobody waits for takes secrets out of it and writes it to the spool, which the daemon reads when it is back.
That child starts a daemon that is away, unless the person stopped it.

`scrubjay-hook inject HOST EVENT` is the only form that prints: what the daemon hands to the agent for this event.
`--cch` prints `{"continue":true}`, for hosts that expect it. `--check` prints the daemon's answer, nothing where there
is none, and keeps nothing of the event: so `scrubjay doctor` sees whether events arrive. Nothing is done at all where
`SCRUBJAY_HOOK=off` is set, as it is for agents that scrubjay itself starts. Where the person set
`SCRUBJAY_USE_MEMORY=0` the daemon is told that memory is off in this session, and nothing else of it is kept.
"""

from __future__ import annotations

import os
import sys
import time

from scrubjay import folders

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would slow every event
if TYPE_CHECKING:
    from typing import NoReturn

OFF_VARIABLE = "SCRUBJAY_HOOK"
"""With the value `off` in the environment, hooks do nothing."""

USE_VARIABLE = "SCRUBJAY_USE_MEMORY"
"""With one of `NO` in the environment of an agent, nothing of its session is stored, and nothing is handed to it."""

NO = ("0", "false", "no", "off")

STDIN_SECONDS = 4.0
"""How long the host may take to write a payload: on a busy machine a second or two. It waits 5 seconds for us."""

STILL_SECONDS = 0.5
"""After which a payload that looks whole is whole, though its pipe stays open: some hosts never close it."""

MAX_PAYLOAD_BYTES = 32 * 1024 * 1024
"""The most that is read: as much as the daemon takes in one request."""

DIRECT_BYTES = 256 * 1024
"""The most that is sent while the host waits: a larger payload may take the daemon longer than a person notices."""

FOLDER_FLAGS = frozenset(("--data-dir", "--home"))

ERROR_NAME = "hook_error"
"""The file of the data folder that says when and where the last hook failed."""


def main() -> NoReturn:
    """Do what the command line says. Exits 0, whatever happens: a host takes anything else for its own trouble."""
    arguments = sys.argv[1:]
    try:
        if {"-h", "--help"} & set(arguments):  # a person who looks: no hook failed
            _print(b"scrubjay-hook is run by agents: scrubjay setup tells them how\n")
        else:
            _run(arguments)
    except BaseException as error:  # noqa: BLE001  # see above; it is noted for `scrubjay doctor`
        _note(arguments, error)
    os._exit(0)  # what the interpreter tidies up at its end takes a millisecond, and may fail


def _run(arguments: list[str]) -> None:
    arguments = list(arguments)
    if "--cch" in arguments:
        arguments.remove("--cch")
        _print(b'{"continue":true}\n')
    check = "--check" in arguments
    if check:
        arguments.remove("--check")
    flags = [word for at, word in enumerate(arguments) if {word, *arguments[max(0, at - 1) : at]} & FOLDER_FLAGS]
    folder = data_folder(arguments)
    injects = arguments[:1] == ["inject"]
    host, event = arguments[injects : injects + 2]
    if os.environ.get(OFF_VARIABLE) == "off":
        return
    sent = time.time_ns() // 1_000_000
    payload = _read()
    if not payload.strip():
        return
    where = {"event": event, "sent": str(sent), "project": _cwd(), "process": str(os.getppid())}
    if os.environ.get(USE_VARIABLE, "").strip().lower() in NO:
        where["use_memory"] = "false"
    if len(payload) <= DIRECT_BYTES:
        from scrubjay_hook.delivery import deliver  # noqa: PLC0415  # half a millisecond, and not for large payloads

        asked = {"inject": "true"} if injects else {"trial": "true"} if check else {}
        answer = deliver(folder, host, where | asked, payload)
        if check:
            _print(answer or b"")
            return
        if answer is not None:
            if injects:
                _print(_output(answer))
            return
    from scrubjay_hook.away import keep  # noqa: PLC0415  # as above: seldom needed

    keep(folder, host, where, payload, flags)


def data_folder(arguments: list[str]) -> str:
    """Return the data folder, where the daemon says how it is reached and where the spool is.

    Takes `--data-dir DIR` and `--home DIR` out of the arguments.
    """
    data_dir, home = _taken(arguments, "--data-dir"), _taken(arguments, "--home")
    found = folders.data_folder(data_dir, home, os.environ)
    if found is None:  # the config file may name it, or the platform has rules of its own
        from scrubjay import settings  # noqa: PLC0415  # 60 ms

        environ = os.environ if home is None else {**os.environ, "SCRUBJAY_HOME": home}
        found = str(settings.load({"data_dir": data_dir}, environ).data_dir)
    return found


def _taken(arguments: list[str], option: str) -> str | None:
    if option not in arguments:
        return None
    at = arguments.index(option)
    _, value = arguments[at : at + 2]
    del arguments[at : at + 2]
    return value


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  # pathlib, as above
    except OSError:  # the folder was removed under the agent
        return ""


def _read() -> bytes:
    """Return standard input, or what has come of it in time. A thread reads: no platform lacks that."""
    import _thread  # noqa: PLC0415  # `threading` takes longer than the whole of the rest

    parts: list[bytes] = []
    before = 0
    done = _thread.allocate_lock()
    done.acquire()

    def read() -> None:
        size = 0
        try:
            while size <= MAX_PAYLOAD_BYTES and (part := os.read(0, 1 << 20)):
                parts.append(part)
                size += len(part)
        except OSError:  # standard input is closed
            pass
        finally:
            done.release()

    _thread.start_new_thread(read, ())
    until = time.monotonic() + STDIN_SECONDS
    while not done.acquire(timeout=STILL_SECONDS) and time.monotonic() < until:
        if parts and parts[-1].rstrip().endswith(b"}") and len(parts) == before:
            break
        before = len(parts)
    return b"".join(parts)


def _print(data: bytes) -> None:
    """Write to standard output, as much as somebody reads."""
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:  # nobody does
        return


def _output(answer: bytes) -> bytes:
    """Return what the daemon has to say to the agent: a string, and the last member of its answer."""
    before, _, rest = answer.decode().partition('"output":"')
    if not before or rest.startswith('"'):
        return b""
    from _json import scanstring  # noqa: PLC0415  # what `json` itself calls; loading that takes ten times as long

    return scanstring(rest, 0, True)[0].encode() + b"\n"


def _note(arguments: list[str], error: BaseException) -> None:
    """Say when, where and by what kind of error a hook failed. Not the error's own words: they may quote a payload."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = "" if at is None else f"{at.tb_frame.f_code.co_filename.rpartition(os.sep)[2]}:{at.tb_lineno}"
    try:
        words = list(arguments)
        folder = data_folder(words)
        if "--check" not in words:
            from scrubjay import refusals  # noqa: PLC0415  # the usual way refuses nothing

            words = [word for word in words if word not in ("--cch", "inject")]
            refusals.count(folder, words[0] if words else "", refusals.reason_of(error))
        line = f"{time.time_ns() // 1_000_000} {type(error).__name__} {place}\n"
        descriptor = os.open(f"{folder}/{ERROR_NAME}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, line.encode())
    except BaseException:  # noqa: BLE001  # no folder, no space: there is nobody left to tell
        return
