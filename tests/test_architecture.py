"""What docs/architecture.md says of the code is so, and the code keeps to the sizes and directions that it promises."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
MAP = ROOT / "docs" / "architecture.md"
PACKAGES = {
    "scrubjay": ROOT / "local" / "scrubjay",
    "scrubjay_shared": ROOT / "shared" / "scrubjay_shared",
    "scrubjay_io": ROOT / "shared" / "scrubjay_io",
    "scrubjay_sync": ROOT / "sync" / "scrubjay_sync",
    "scrubjay_cloud": ROOT / "cloud" / "scrubjay_cloud",
    "scrubjay_bench": ROOT / "bench" / "scrubjay_bench",
}
MOST_LINES = 500
MOST_METHODS = 23
LONG_MODULES = {
    "scrubjay.distill.pasted": "one idea: what a person said told from what they pasted, by three kinds of evidence",
    "scrubjay.lifecycle.readings": "one idea: what a sentence says of what held before, with its words",
    "scrubjay.service.application": "the composition of everything around one store",
    "scrubjay.memory": "the Python interface: a method an operation",
}
"""Modules that are longer and why: one idea that would be harder to read in two places."""
LARGE_CLASSES = {
    "scrubjay.store.store.Store": "one file: opening, reading, writing and keeping it small",
    "scrubjay.memory.Memory": "the Python interface: a method an operation",
}
"""Classes with more methods and why."""


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts))), path


def flows() -> dict[str, list[str]]:
    """Return each flow of the map: its heading, and the modules that its steps name, in order."""
    sections = re.split(r"^## ", MAP.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {}
    for heading, _, text in (section.partition("\n") for section in sections):
        if heading.startswith("Flow"):
            steps = re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]
            named = [re.findall(r"`(scrubjay[a-z_]*(?:\.\w+)+)`", step) for step in steps]
            assert all(named), f"a step of {heading} names no module"
            found[heading] = [name for names in named for name in names]
    return found


def rooms_in_map() -> set[str]:
    """Return the rooms that the table of the map names."""
    return set(re.findall(r"^\| `([a-z_]+(?:\.[a-z_]+)?)` \|", MAP.read_text(encoding="utf-8"), re.MULTILINE))


@functools.cache
def imports() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_the_map_names_every_room_and_no_other() -> None:
    rooms = set()
    for package, folder in PACKAGES.items():
        if package == "scrubjay":
            rooms |= {
                f"scrubjay.{path.stem}"
                for path in folder.iterdir()
                if (path.is_dir() and (path / "__init__.py").exists())
                or (path.suffix == ".py" and path.stem != "__init__")
            }
        else:
            rooms.add(package)

    assert rooms_in_map() == rooms


@pytest.mark.parametrize("flow", ["Flow: an event", "Flow: a recall", "Flow: a night job", "Flow: a sync round"])
def test_each_module_of_a_flow_is_there_and_an_earlier_one_leads_to_it(flow: str) -> None:
    steps = flows()[flow]
    graph = imports()

    assert len(steps) >= 8
    assert [step for step in steps if step not in graph.modules] == []
    apart = [
        step
        for place, step in enumerate(steps[1:], 1)
        if not any(
            graph.chain_exists(importer=one, imported=other)
            for earlier in steps[:place]
            for one, other in ((earlier, step), (step, earlier))
        )
    ]
    assert apart == []


def test_no_module_is_longer_than_one_idea_needs() -> None:
    long = {name for name, path in modules() if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES}

    assert long == set(LONG_MODULES)


def test_no_class_has_more_methods_than_can_be_kept_in_mind() -> None:
    large = set()
    for name, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
                if len(methods) > MOST_METHODS:
                    large.add(f"{name}.{node.name}")

    assert large == set(LARGE_CLASSES)


def test_no_two_modules_import_each_other_not_even_for_their_types() -> None:
    graph = imports()
    circles = []
    for name in sorted(graph.modules):
        circles += [
            (name, other)
            for other in graph.find_modules_directly_imported_by(name)
            if name < other and graph.chain_exists(importer=other, imported=name)
        ]

    assert circles == []
