"""deploy/ says what the code says: programs, ports, settings, limits, and the versions that were tested.

Needs no tool beyond the project's own; `test_deploy_tools` has each file read by the program that will use it.
"""

from __future__ import annotations

import ast
import os
import plistlib
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scrubjay_cloud import cli, policy, settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = {path.name: yaml.safe_load(path.read_text()) for path in sorted(DEPLOY.glob("compose.*.yaml"))}
MANIFESTS = {
    folder.name: [one for path in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
    for folder in sorted(DEPLOY.joinpath("kubernetes").iterdir())
    if folder.is_dir()
}
DISTRIBUTIONS = {"Stemmer": "pystemmer"}
SECRET = yaml.safe_load(DEPLOY.joinpath("kubernetes", "secret.example.yaml").read_text())
IMAGE = dict(
    re.findall(r"^(?:ENV)? +(SCRUBJAY\w+)=(\S+)", DEPLOY.joinpath("Dockerfile").read_text(), flags=re.MULTILINE)
)
"""What the image sets, and the other files need not."""

NOT_OURS = {"SCRUBJAY_DOMAIN", "SCRUBJAY_UPSTREAM"}
"""Names that only these files know: the proxy's."""


OPERATOR = {
    "SCRUBJAY_DOMAIN": "sync.example.org",
    "POSTGRES_PASSWORD": "0123456789abcdef",
    "SCRUBJAY_CLOUD_PEPPER": "0f" * 32,
}
"""What compose files ask of the operator."""


def interpolated(text: str) -> str:
    """As docker compose does it: the operator's value, or else the default after `:-`."""
    return re.sub(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}", lambda found: OPERATOR.get(found[1], found[2] or ""), text)


def environments() -> dict[str, dict[str, str]]:
    """What each file gives the service, as it would arrive there."""
    found = {
        name: IMAGE | {key: interpolated(value) for key, value in file["services"]["scrubjay"]["environment"].items()}
        for name, file in COMPOSE.items()
    }
    for name, manifests in MANIFESTS.items():
        found[f"kubernetes/{name}"] = IMAGE | next(of_kind(manifests, "ConfigMap"))["data"] | SECRET["stringData"]
    text = DEPLOY.joinpath("systemd", "cloud.env.example").read_text()
    found["systemd"] = dict(re.findall(r"^#?([A-Z_]+)=(.*)", text, flags=re.MULTILINE))
    plist = plistlib.loads(DEPLOY.joinpath("launchd", "org.scrubjay.cloud.plist").read_bytes())
    found["launchd"] = plist["EnvironmentVariables"]
    return found


def of_kind(manifests: list[dict[str, Any]], *kinds: str) -> Iterator[dict[str, Any]]:
    return (one for one in manifests if one["kind"] in kinds)


def workload(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return next(of_kind(manifests, "Deployment", "StatefulSet"))


def pods(manifests: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in of_kind(manifests, "Deployment", "StatefulSet"):
        yield one["spec"]["template"]["spec"]
    for one in of_kind(manifests, "CronJob"):
        yield one["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def pinned(lock: Path) -> dict[str, set[str]]:
    """Name to versions; a lock for several Pythons may hold two of one."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ;]+)", lock.read_text(), flags=re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def test_every_image_is_named_with_its_exact_version() -> None:
    python = re.search(r"^ARG PYTHON=(\S+)", DEPLOY.joinpath("Dockerfile").read_text(), flags=re.MULTILINE)
    images = [f"python:{python[1]}"] if python else []
    images += [
        service["image"] for file in COMPOSE.values() for service in file["services"].values() if "build" not in service
    ]
    images += [container["image"] for file in MANIFESTS.values() for pod in pods(file) for container in containers(pod)]

    assert len(images) >= 6
    assert [image for image in images if not re.search(r":\d+\.\d+\.\d+", image)] == []


@pytest.mark.parametrize("name", COMPOSE)
def test_only_the_tls_proxy_is_published(name: str) -> None:
    published = {service for service, one in COMPOSE[name]["services"].items() if "ports" in one}

    assert published == {"caddy"}


@pytest.mark.parametrize("name", COMPOSE)
def test_forwarded_addresses_are_believed_from_the_proxys_network_only(name: str) -> None:
    network = COMPOSE[name]["networks"]["proxy"]["ipam"]["config"][0]["subnet"]

    assert COMPOSE[name]["services"]["scrubjay"]["environment"]["SCRUBJAY_CLOUD_PROXIES"] == network


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_manifests_refer_to_is_there(name: str) -> None:
    manifests = MANIFESTS[name]
    labels = workload(manifests)["spec"]["template"]["metadata"]["labels"]
    ports = {
        port["name"]: port["containerPort"]
        for pod in pods(manifests)
        for one in containers(pod)
        for port in one.get("ports", ())
    }
    service = next(of_kind(manifests, "Service"))
    rules = next(of_kind(manifests, "NetworkPolicy"))["spec"]["ingress"]
    backends = [
        path["backend"]["service"]["port"]["name"]
        for rule in next(of_kind(manifests, "Ingress"))["spec"]["rules"]
        for path in rule["http"]["paths"]
    ]

    assert workload(manifests)["spec"]["selector"]["matchLabels"] == labels
    assert service["spec"]["selector"] == labels
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    assert {port["port"] for rule in rules for port in rule["ports"]} == set(ports.values())
    assert set(backends) <= {port["name"] for port in service["spec"]["ports"]}
    for budget in of_kind(manifests, "PodDisruptionBudget"):
        assert budget["spec"]["selector"]["matchLabels"] == labels
    for pod in pods(manifests):
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        volumes |= {claim["metadata"]["name"] for claim in workload(manifests)["spec"].get("volumeClaimTemplates", ())}
        for container in containers(pod):
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert {source["configMapRef"]["name"] for source in container.get("envFrom", ())} <= {
                one["metadata"]["name"] for one in of_kind(manifests, "ConfigMap")
            }
            for variable in container.get("env", ()):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                assert reference is None or (
                    reference["name"] == SECRET["metadata"]["name"] and reference["key"] in SECRET["stringData"]
                )


@pytest.mark.parametrize("name", MANIFESTS)
def test_pods_have_what_the_restricted_profile_asks(name: str) -> None:
    for pod in pods(MANIFESTS[name]):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_a_sqlite_file_has_one_writer_everywhere() -> None:
    stateful = workload(MANIFESTS["sqlite"])

    assert (stateful["kind"], stateful["spec"]["replicas"]) == ("StatefulSet", 1)
    for claim in stateful["spec"]["volumeClaimTemplates"]:
        assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert "deploy" not in COMPOSE["compose.sqlite.yaml"]["services"]["scrubjay"]
    for one, other in (("", "-litestream"), ("-litestream", "")):
        unit = DEPLOY.joinpath("systemd", f"scrubjay-cloud{one}.service").read_text()
        assert f"Conflicts=scrubjay-cloud{other}.service\n" in unit


def test_the_image_holds_what_the_cloud_imports_in_the_versions_that_were_tested() -> None:
    imported = {
        DISTRIBUTIONS.get(name.partition(".")[0], name.partition(".")[0].replace("_", "-"))
        for package in ("cloud/scrubjay_cloud", "shared/scrubjay_io", "shared/scrubjay_shared")
        for path in ROOT.joinpath(package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            else []
        )
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("scrubjay_")
    }
    image, tested = pinned(DEPLOY / "image.lock"), pinned(ROOT / "requirements.lock")

    assert imported - image.keys() == set()
    assert {name: versions for name, versions in image.items() if versions != tested.get(name)} == {}


@pytest.mark.parametrize("name", environments())
def test_the_service_takes_the_settings_that_a_file_gives(name: str) -> None:
    found = settings.load(environ=environments()[name])

    assert found.secure
    assert found.registration == "invite"
    assert found.proxies


def test_no_file_names_a_setting_that_there_is_not() -> None:
    known = {option.variable for option in settings.OPTIONS} | NOT_OURS
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in [*DEPLOY.rglob("*"), ROOT / "docs" / "self-hosting.md"]
        if path.is_file()
        for name in re.findall(r"\bSCRUBJAY_[A-Z_]+\b", path.read_text())
    }

    assert {one for one in named if one[1] not in known} == set()


def numbers(file: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, DEPLOY.joinpath(file).read_text()))


def test_ports_are_those_of_the_service() -> None:
    defaults = settings.Settings(data=ROOT)
    port, metrics = str(defaults.port), str(defaults.metrics_port)

    assert numbers("Dockerfile", r"EXPOSE (\d+) (\d+)") == {(port, metrics)}
    assert numbers("Caddyfile", r"dynamic a \S+ (\d+)") == {port}
    assert numbers("nginx.conf", r"server 127\.0\.0\.1:(\d+)") == {port}
    assert numbers("systemd/cloud.env.example", r"PORT=(\d+)") == {port, metrics}
    for name in MANIFESTS:
        file = f"kubernetes/{name}/scrubjay-cloud.yaml"
        assert numbers(file, r"containerPort: (\d+)") == {port, metrics}
        assert numbers(file, r'prometheus.io/port: "(\d+)"') == {metrics}


def test_proxies_let_through_what_a_client_sends_and_wait_as_long_as_the_service_may() -> None:
    ingresses = [next(of_kind(manifests, "Ingress"))["metadata"]["annotations"] for manifests in MANIFESTS.values()]
    prefix = "nginx.ingress.kubernetes.io"
    megabytes = numbers("Caddyfile", r"max_size (\d+)MB") | numbers("nginx.conf", r"client_max_body_size (\d+)m;")
    megabytes |= {one[f"{prefix}/proxy-body-size"].removesuffix("m") for one in ingresses}
    seconds = numbers("Caddyfile", r"response_header_timeout (\d+)s") | numbers(
        "nginx.conf", r"proxy_read_timeout (\d+)s;"
    )
    seconds |= {one[f"{prefix}/proxy-read-timeout"] for one in ingresses}

    assert min(map(int, megabytes)) * 1_000_000 > policy.DEFAULT.max_body_bytes
    assert min(map(int, seconds)) > policy.DEFAULT.max_wait_s


WORDS = r"(?:serve|check|--ready|admin|create-invite|users|backup|restore|migrate|drill|quota|NAME)"
"""What may follow `scrubjay-cloud`."""


def commands() -> Iterator[tuple[str, str]]:
    """Every command line of the service in deploy/ and its document, with the file it stands in.

    It stands there as words, as a JSON array, or as a YAML one.
    """
    for path in [*DEPLOY.rglob("*"), ROOT / "docs" / "self-hosting.md"]:
        if path.is_file():
            for found in re.findall(rf'scrubjay-cloud"?,?((?: "?{WORDS}\b"?,?)+)', path.read_text()):
                yield path.name, " ".join(re.findall(r"[A-Za-z-]+", found))


def test_every_command_is_one_that_the_program_has() -> None:
    found = set(commands())
    words = {line for _, line in found}

    assert {"serve", "check --ready", "check", "admin create-invite", "admin restore", "admin migrate"} <= words
    for _, line in sorted(found):
        cli._parser().parse_args(line.split())


def test_everywhere_litestream_supervises_in_the_same_way() -> None:
    wanted = ["litestream", "replicate", "-config", "litestream.yml", "-exec", "scrubjay-cloud serve"]
    image = re.findall(r"^CMD (\[.*litestream.*\])$", DEPLOY.joinpath("Dockerfile").read_text(), flags=re.MULTILINE)
    unit = DEPLOY.joinpath("systemd", "scrubjay-cloud-litestream.service").read_text()
    plist = plistlib.loads(DEPLOY.joinpath("launchd", "org.scrubjay.cloud.plist").read_bytes())
    lines = [
        *(yaml.safe_load(line) for line in image),
        shlex.split(re.findall(r"^ExecStart=(.*)$", unit, flags=re.MULTILINE)[0]),
        plist["ProgramArguments"],
        next(pods(MANIFESTS["sqlite"]))["containers"][0]["command"],
    ]

    assert (
        "\nKillMode=mixed\n" in unit
    )  # two signals mean "end at once" to the service, and litestream passes on its own
    assert [[re.sub(r"^/\S*/", "", word) for word in line] for line in lines] == [wanted] * 4


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.mark.slow
def test_litestream_with_our_file_starts_the_service_which_sees_itself_replicated_and_both_end_in_order(
    tmp_path: Path,
) -> None:
    here = Path(sys.executable).parent
    data, replica, log = tmp_path / "data", tmp_path / "replica", tmp_path / "log"
    data.mkdir(mode=0o700)
    environ = {
        "PATH": f"{here}:{os.environ['PATH']}",
        "SCRUBJAY_CLOUD_DATA": str(data),
        "SCRUBJAY_CLOUD_REPLICA": replica.as_uri(),
        "SCRUBJAY_CLOUD_PORT": free_port(),
        "SCRUBJAY_CLOUD_METRICS_PORT": free_port(),
    }
    line = ["litestream", "replicate", "-config", str(DEPLOY / "litestream.yml"), "-exec", "scrubjay-cloud serve"]
    with log.open("wb") as written:
        process = subprocess.Popen([str(here / line[0]), *line[1:]], env=environ, stdout=written, stderr=written)
    try:
        said = ""
        deadline = time.monotonic() + 60
        while '"state":"replicating"' not in said:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"{said}\n{log.read_text()}"
            time.sleep(0.5)
            ready = subprocess.run(
                [here / "scrubjay-cloud", "check", "--ready"], env=environ, capture_output=True, text=True, check=False
            )
            said = ready.stdout
        subprocess.run(
            [here / "scrubjay-cloud", "admin", "create-invite"], env=environ, check=True, capture_output=True
        )
    finally:
        process.send_signal(signal.SIGTERM)
        ended = process.wait(timeout=60)
    restored = tmp_path / "restored.db"
    subprocess.run([here / "litestream", "restore", "-o", restored, replica.as_uri()], check=True, capture_output=True)
    copy = sqlite3.connect(restored)
    invites = copy.execute("select count(*) from invite").fetchone()
    copy.close()

    assert ended == 0
    assert "stopped serving" in log.read_text()
    assert (data / "litestream.sock").exists() is False
    assert invites == (1,)
