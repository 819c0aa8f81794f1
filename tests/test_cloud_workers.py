"""Several processes that serve one port: they share it, one that dies is replaced, and they end together."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2 as httpx
import psutil
import pytest

from cloud_client import Client, Device, second_device, signed_up

WORKERS = 2
SECONDS = 60.0


def free_ports(count: int) -> int:
    """A port of loopback of which, and of whose next ones, nobody makes use: none that the system gives to whoever asks."""
    while True:
        port = random.randrange(20_000, 32_000)
        try:
            for place in range(count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port + place))
        except OSError:
            continue
        return port


def serve(folder: Path, **environ: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SCRUBJAY_", "DATABASE_"))}
    given = kept | {"SCRUBJAY_CLOUD_DATA": str(folder), "SCRUBJAY_CLOUD_WORKERS": str(WORKERS)} | environ
    given |= {"SCRUBJAY_CLOUD_PEPPER": "p" * 32}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-P", "-m", "scrubjay_cloud.cli", "serve"], env=given, stderr=log)


@contextmanager
def running(folder: Path, postgres: str, **environ: str) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    port = free_ports(1 + WORKERS)
    metrics = port + 1
    ports = {"SCRUBJAY_CLOUD_PORT": str(port), "SCRUBJAY_CLOUD_METRICS_PORT": str(metrics)}
    process = serve(folder, DATABASE_URL=postgres, **ports, **environ)
    try:
        for place in range(WORKERS):
            wait_for(process, f"http://127.0.0.1:{metrics + place}/metrics")
        yield process, port, metrics
    finally:
        process.kill()
        process.wait()


def wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if answers(url):
            return
        time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - loopback
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    found = psutil.Process(process.pid).children()
    return [one for one in found if "multiprocessing.spawn" in " ".join(one.cmdline())]


def gone(processes: list[psutil.Process]) -> bool:
    return psutil.wait_procs(processes, timeout=SECONDS)[1] == []


@pytest.mark.slow
def test_workers_share_a_port_one_that_dies_is_replaced_and_they_end_together(tmp_path: Path, postgres: str) -> None:
    with running(tmp_path, postgres) as (process, port, metrics):
        assert all(answers(f"http://127.0.0.1:{port}/readyz") for _ in range(20))
        before = workers(process)
        assert len(before) == WORKERS

        before[1].kill()
        gone(before[1:])
        wait_for(process, f"http://127.0.0.1:{metrics + 1}/metrics")
        wait_for(process, f"http://127.0.0.1:{metrics}/metrics")
        after = workers(process)
        assert len(after) == WORKERS
        assert {one.pid for one in after} != {one.pid for one in before}
        assert all(answers(f"http://127.0.0.1:{port}/readyz") for _ in range(20))

        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        assert gone(after)


@pytest.mark.slow
@pytest.mark.anyio
async def test_what_one_worker_takes_wakes_who_waits_at_another(tmp_path: Path, postgres: str) -> None:
    with running(tmp_path, postgres, SCRUBJAY_CLOUD_REGISTRATION="open") as (_, port, _):

        async def asked(device: Device) -> int:
            """Wait for news on a connection of its own, which the kernel gives to whichever worker."""
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                device = replace(device, client=Client(http, device.client.token))
                while not (page := await device.pull(wait=25)).objects:
                    pass
                return len(page.objects)

        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            first = await signed_up(Client(http))
            others = [await second_device(first) for _ in range(8)]
            waiting = [asyncio.create_task(asked(device)) for device in others]
            await asyncio.sleep(1.0)  # until they all wait, at either worker
            await first.push(first.segment())

            async with asyncio.timeout(15):
                assert await asyncio.gather(*waiting) == [1] * len(others)


@pytest.mark.slow
def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path: Path, postgres: str) -> None:
    with running(tmp_path, postgres) as (process, _, _):
        left = workers(process)

        process.kill()

        assert gone(left)


@pytest.mark.slow
def test_several_workers_without_postgres_are_refused(tmp_path: Path) -> None:
    process = serve(tmp_path)

    assert process.wait(SECONDS) == 2
    assert b"several workers need PostgreSQL" in (tmp_path / "log").read_bytes()


@pytest.mark.slow
def test_what_keeps_a_worker_from_starting_ends_them_all_and_is_said(tmp_path: Path, postgres: str) -> None:
    port = free_ports(1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        process = serve(tmp_path, DATABASE_URL=postgres, SCRUBJAY_CLOUD_PORT=str(port))

        assert process.wait(SECONDS) == 5
    assert f"port {port} is used" in (tmp_path / "log").read_text()


def test_a_number_of_workers_that_is_none_is_refused(tmp_path: Path) -> None:
    process = serve(tmp_path, SCRUBJAY_CLOUD_WORKERS="0")

    assert process.wait(SECONDS) == 2
    assert json.dumps("from 1 to 64")[1:-1] in (tmp_path / "log").read_text()
