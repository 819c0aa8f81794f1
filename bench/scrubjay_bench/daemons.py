"""Real daemons on throwaway folders, started as the product starts them, with nothing of the user's own settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from scrubjay import policy
from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.settings import Settings
from scrubjay.transports.client import Client, Running
from scrubjay_shared.errors import ScrubjayError, UnavailableError

LONG_SECONDS = 600.0  # of one request: an import of a whole data set
PATIENT = replace(policy.DEFAULT.daemon, start_seconds=LONG_SECONDS)  # a million items on a busy machine take a minute
LOOK_SECONDS = 0.002  # between looks at a daemon that starts: below what is to be told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A daemon that serves, and its process."""

    settings: Settings
    running: Running
    process: psutil.Process

    def client(self, *, tcp: bool = False) -> Client:
        """Return a new connection, through the Unix socket unless told otherwise or there is none."""
        return Client(
            token=self.settings.token_path.read_text(encoding="ascii").strip(),
            socket_path=None if tcp else self.running.socket,
            address=(self.running.host, self.running.port),
            timeout=LONG_SECONDS,
        )

    def cpu_seconds(self) -> float:
        """Return the processor time it has used, in ticks of 10 ms."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def rss_mb(self) -> float:
        """Return its resident memory in megabytes of 10^6 bytes."""
        return float(self.process.memory_info().rss) / 1e6

    def children_rss_mb(self) -> float:
        """Return the resident memory of the processes that it has started, in megabytes of 10^6 bytes."""
        found = 0.0
        for child in self.process.children():
            with suppress(psutil.NoSuchProcess):  # it ended between two looks
                found += float(child.memory_info().rss) / 1e6
        return found


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """Yield a new folder that is removed afterwards. Its path is short: a Unix socket's may have 103 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="sjb-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def settings_in(home: Path, *, models_dir: Path, model: str) -> Settings:
    """Return settings that keep everything under `home` except the model."""
    flags: dict[str, object] = {"models_dir": models_dir, "model": model, "port": 0, "log_level": "warning"}
    return options.load(flags, {"SCRUBJAY_HOME": str(home)})


def environment(home: Path, *, models_dir: Path, model: str) -> dict[str, str]:
    """Return the environment in which a process of ours, however it is started, uses those settings."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    return kept | {
        "SCRUBJAY_HOME": str(home),
        "SCRUBJAY_MODELS_DIR": str(models_dir),
        "SCRUBJAY_MODEL": model,
        "SCRUBJAY_PORT": "0",
        "SCRUBJAY_LOG_LEVEL": "warning",
    }


@contextmanager
def serving(home: Path, *, models_dir: Path, model: str) -> Iterator[Daemon]:
    """Start a daemon on `home`, and stop it afterwards."""
    chosen = settings_in(home, models_dir=models_dir, model=model)
    try:
        running = control.start(chosen, policy=PATIENT).daemon
        yield Daemon(settings=chosen, running=running, process=psutil.Process(running.pid))
    finally:
        control.stop(chosen)


def started(home: Path, *, models_dir: Path, model: str) -> float:
    """Start a daemon from nothing, stop it, and return the seconds until /readyz said yes."""
    chosen = settings_in(home, models_dir=models_dir, model=model)
    options.ensure_dirs(chosen)
    command = [sys.executable, "-P", "-m", "scrubjay.daemon"]
    began = time.perf_counter()
    process = subprocess.Popen(command, env=_absolute(environment(home, models_dir=models_dir, model=model)), cwd=home)
    try:
        while not _ready(chosen):
            if process.poll() is not None or time.perf_counter() - began > LONG_SECONDS:
                raise UnavailableError("the daemon did not start", hint="run it once with scrubjay daemon start")
            time.sleep(LOOK_SECONDS)
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def _ready(chosen: Settings) -> bool:
    record = Running.of(chosen.data_dir)
    if record is None:
        return False
    try:
        with Client(token="", socket_path=record.socket, address=(record.host, record.port)) as client:
            return bool(client.call("GET", "/readyz").get("ready"))
    except ScrubjayError:
        return False


def _absolute(environ: dict[str, str]) -> dict[str, str]:
    """Make PYTHONPATH hold from another working folder too."""
    if paths := environ.get("PYTHONPATH"):
        environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths.split(os.pathsep))  # noqa: PTH100
    return environ
