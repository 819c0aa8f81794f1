"""`scrubjay bench answers`: packets of what a reader sees, and the figures that a judge's marks add up to.

Three steps, between which a model or a person reads and writes: `packets` fills stores and writes what one search shows
of each question; a reader answers; `sheet` mixes the answers of all configurations; a judge marks; `score` counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from scrubjay import __version__
from scrubjay import settings as options
from scrubjay_bench import answers, answers_packets, devmem, retrieval
from scrubjay_bench.answers import Asked, Mark
from scrubjay_bench.devmem_asking import LEARNING
from scrubjay_shared.errors import InvalidError, NotFoundError

ABOUT = "whether a reader answers right from what one search shows: packets to read, and a judge's marks counted"
CODE = (*LEARNING, "scrubjay/service", "scrubjay/transports/mcp")
QUESTIONS, OPENED, ANSWERS = "questions.jsonl", "opened.jsonl", "answers.jsonl"
KEY = ".key.jsonl"
"""How the file of a configuration ends that has the right answers: beside its folder, for a reader sees the folder."""

SHEET, WHOSE, MARKS = "sheet.jsonl", "sheet.key.json", "marks.jsonl"
AGAIN = "scrubjay bench answers sheet FOLDER writes it; its lines are then to be marked again"
SEED = 7
PACKET = 15
SESSIONS_COUNT, LOCOMO_COUNT = 40, 150
"""Questions with an answer: half the width of the interval is then about .15, and .07."""

LineT = TypeVar("LineT")


class Answered(msgspec.Struct, frozen=True):
    """A line of `answers.jsonl`; what a reader notes beside is left alone."""

    qid: Annotated[str, msgspec.Meta(min_length=1)]
    answer: str


class Given(msgspec.Struct, frozen=True):
    """A line of `--arguments`: what a model gave the search of one question beside the question."""

    qid: str
    arguments: dict[str, Any]


def add(commands: Any) -> None:
    """Add the command and its three steps to a parser's subparsers."""
    command = commands.add_parser("answers", help=ABOUT, description=__doc__)
    steps = command.add_subparsers(required=True, metavar="STEP")
    packets = steps.add_parser("packets", help="ask, and write what a reader sees")
    data = packets.add_mutually_exclusive_group(required=True)
    files = f"{devmem.SESSIONS}, {devmem.MEMORIES}, {devmem.TEMPTING} and {devmem.QUESTIONS}"
    data.add_argument("--data", type=Path, metavar="FOLDER", help=f"a folder with {files}")
    data.add_argument("--locomo", type=Path, metavar="FILE", help="locomo10.json")
    packets.add_argument("--projects", nargs="+", default=(), metavar="NAME", help="of --data: some projects only")
    packets.add_argument("--gold", action="store_true", help="of --data: add the labelled memories and learn nothing")
    packets.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the configurations stand")
    packets.add_argument("--name", required=True, help="what this configuration is called there")
    packets.add_argument(
        "--questions",
        type=int,
        metavar="N",
        help=f"with an answer ({SESSIONS_COUNT} of sessions, and all that nothing answers; {LOCOMO_COUNT} of LoCoMo)",
    )
    packets.add_argument("--seed", type=int, default=SEED, help="which are drawn, and in which order (%(default)s)")
    packets.add_argument(
        "--arguments",
        type=Path,
        metavar="FILE",
        help='lines {"qid": …, "arguments": {…}}: what a model gives memory_search beside the question',
    )
    packets.add_argument("--model", default=options.DEFAULT_MODEL, help="the embedding model (%(default)s)")
    packets.add_argument("--reranker", default=options.DEFAULT_RERANKER, help="the reranking model (%(default)s)")
    packets.add_argument("--models", type=Path, help="the folder with the models (that of the settings)")
    packets.add_argument("--scratch", type=Path, help="where to write meanwhile (the system's temporary folder)")
    packets.set_defaults(act=_packets)
    sheet = steps.add_parser("sheet", help="mix the answers of all configurations for a judge")
    score = steps.add_parser("score", help="count a judge's marks")
    for step, act in ((sheet, _sheet), (score, _score)):
        step.add_argument("out", type=Path, metavar="FOLDER", help="where the configurations stand")
        step.set_defaults(act=act)
    sheet.add_argument("--seed", type=int, default=SEED, help="the order (%(default)s)")
    score.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")


def _packets(line: argparse.Namespace) -> int:
    if line.questions is not None and line.questions < 1:
        raise InvalidError("less than one question", hint="leave --questions out")
    if line.locomo and (line.gold or line.projects):
        raise InvalidError("LoCoMo has neither projects nor labelled memories", hint="leave --projects and --gold out")
    folder = line.out / line.name
    if (folder / ANSWERS).exists():
        raise InvalidError(f"{folder} holds answers already", hint="give another --name")
    models_dir = line.models or options.load(environ=os.environ).models_dir
    for name in (line.model, line.reranker):
        if name != options.NO_MODEL and not (models_dir / name).is_dir():
            raise NotFoundError(f"the model {name} is not there", hint=f"scrubjay models pull {name}")
    material = (
        answers_packets.of_locomo(line.locomo) if line.locomo else answers_packets.of_sessions(line.data, line.projects)
    )
    count = line.questions or (LOCOMO_COUNT if line.locomo else SESSIONS_COUNT)
    chosen = answers.drawn(material.questions, count, line.seed, strata=material.strata)
    run = answers_packets.Run(
        material=material,
        questions=chosen,
        is_gold=line.gold,
        models_dir=models_dir.absolute(),
        model=line.model,
        reranker=line.reranker,
        scratch=line.scratch,
        given={one.qid: one.arguments for one in _lines(line.arguments, Given)} if line.arguments else {},
    )
    shown = {packet.asked.qid: packet for packet in answers_packets.packets(run)}
    shutil.rmtree(folder / "packets", ignore_errors=True)
    (folder / "packets").mkdir(parents=True)
    for number, start in enumerate(range(0, len(chosen), PACKET), start=1):
        parts = (f"##### {one.qid}  {one.question}\n{shown[one.qid].shown}" for one in chosen[start : start + PACKET])
        (folder / "packets" / f"{number:02}.txt").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    opened = [
        {"qid": one.qid, "id": id_, "text": text} for one in chosen for id_, text in shown[one.qid].opened.items()
    ]
    _write_lines(folder / OPENED, opened)
    _write_lines(folder / QUESTIONS, [{"qid": one.qid, "question": one.question} for one in chosen])
    _write_lines(line.out / f"{line.name}{KEY}", [asdict(one) for one in chosen])
    (folder / "reader.md").write_text(answers.READER, encoding="utf-8")
    conditions = {
        "data": {"name": material.name, "sha256": material.sha256},
        "gold": line.gold,
        "seed": line.seed,
        "model": retrieval.model_facts(line.model),
        "reranker": retrieval.model_facts(line.reranker),
        "scrubjay": __version__,
        "code": retrieval.code(CODE),
    }
    _write(folder / "run.json", conditions)
    print(f"{folder}: {len(chosen)} questions, {len(opened)} ids to open; reader.md says what to write into {ANSWERS}")
    return 0


def _sheet(line: argparse.Namespace) -> int:
    asked = _configurations(line.out)
    given = {name: _answers(line.out / name / ANSWERS) for name in asked}
    shown, whose = answers.sheet(asked, given, line.seed)
    _write_lines(line.out / SHEET, shown)
    _write(line.out / WHOSE, whose)
    (line.out / "judge.md").write_text(answers.JUDGE, encoding="utf-8")
    print(f"{line.out / SHEET}: {len(shown)} answers of {len(asked)} configurations; judge.md says what to write")
    return 0


def _score(line: argparse.Namespace) -> int:
    if not (line.out / WHOSE).exists():
        raise NotFoundError(f"{WHOSE} is not in the folder", hint="scrubjay bench answers sheet FOLDER writes it")
    try:
        whose = msgspec.json.decode((line.out / WHOSE).read_bytes(), type=dict[str, tuple[str, str]])
    except msgspec.MsgspecError as error:
        raise InvalidError(f"{line.out / WHOSE}: {error}", hint=AGAIN) from error
    asked = _configurations(line.out)
    if set(whose.values()) != {(name, one.qid) for name, questions in asked.items() for one in questions}:
        raise InvalidError(f"{line.out / WHOSE} is of other questions than the configurations", hint=AGAIN)
    rows = answers.rows(asked, whose, _lines(line.out / MARKS, Mark))
    print(table(rows))
    if line.json:
        _write(line.json, {"rows": rows})
    return 0


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table: a line for each configuration, and one for each of its categories."""
    head = "| configuration | questions | right | 95 % (Wilson) | strict | unanswerable refused |"
    lines = [head, "|---|--:|--:|---|--:|--:|"]
    for row in rows:
        lenient, refused = row["lenient"], row["unanswerable"]
        lines.append(
            f"| {row['configuration']} | {lenient['of']} | {_share(lenient)} | {_interval(lenient)} |"
            f" {_share(row['strict'])} | {refused['right']} of {refused['of']} |"
        )
        lines += [
            f"| – {category} | {one['of']} | {_share(one)} | {_interval(one)} | | |"
            for category, one in row["by_category"].items()
        ]
    return "\n".join(lines)


def _share(found: Mapping[str, Any]) -> str:
    return "–" if found["share"] is None else f"{found['share']:.3f}"


def _interval(found: Mapping[str, Any]) -> str:
    return f"{found['low']:.3f}–{found['high']:.3f}"


def _configurations(out: Path) -> dict[str, list[Asked]]:
    """Return the questions of each configuration in a folder, by its name."""
    found = {path.name.removesuffix(KEY): _lines(path, Asked) for path in sorted(out.glob(f"*{KEY}"))}
    if not found:
        raise NotFoundError(f"{out} holds no configuration", hint="scrubjay bench answers packets writes one")
    return found


def _answers(path: Path) -> dict[str, str]:
    return {one.qid: one.answer for one in _lines(path, Answered)}


def _lines(path: Path, of: type[LineT]) -> list[LineT]:
    try:
        rows = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise NotFoundError(f"{path} is not there", hint="reader.md and judge.md say what stands where") from None
    found = []
    for number, row in enumerate(rows, start=1):
        if row.strip():
            try:
                found.append(msgspec.json.decode(row, type=of))
            except msgspec.MsgspecError as error:
                raise InvalidError(f"{path.name}, line {number}: {error}", hint="one JSON object a line") from error
    return found


def _write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines)
    path.write_text(text, encoding="utf-8")


def _write(path: Path, found: Any) -> None:
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
