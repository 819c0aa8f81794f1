"""What docs/architecture.md says of the code is so, and the code keeps to the directions that it promises."""

import ast
import functools
import re
from pathlib import Path

import grimp
import pytest

from scrubjay import store

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


def test_no_name_that_the_store_lends_is_also_a_module_of_it() -> None:
    """Python puts a module that is imported into its package: whoever asks for the name after that gets the module."""
    folder = PACKAGES["scrubjay"] / "store"
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}

    assert modules & set(store.__all__) == set()


STARTS = {"Popen", "run", "call", "check_call", "check_output", "create_subprocess_exec"}


def test_what_the_daemon_starts_opens_no_window() -> None:
    """A process without a console makes Windows open one for each child that is not told otherwise."""
    without = []
    for path in sorted((ROOT / "local").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in STARTS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in {"subprocess", "asyncio"}
                and (node.func.attr, node.func.value.id) != ("run", "asyncio")
                and not {"creationflags", None} & {keyword.arg for keyword in node.keywords}
            ):
                without.append(str(path.relative_to(ROOT / "local")))  # noqa: PERF401  # it is read better so

    assert without == []
