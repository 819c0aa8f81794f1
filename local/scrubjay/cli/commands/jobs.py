"""`scrubjay jobs`: list, run and pause the background jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import Parser, add_subcommand, count, shared, text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import NotFoundError

if TYPE_CHECKING:
    from argparse import Namespace


def configure(parser: Parser) -> None:
    """Take what to do about which job."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=False)
    listed = add_subcommand(subcommands, "list", "show how each job is")
    history = add_subcommand(subcommands, "history", "show the last runs, newest first")
    history.add_argument("name", nargs="?", type=text, metavar="NAME", help="only of this job")
    history.add_argument("-n", "--limit", type=count, default=20, help="at most this many runs (20)")
    run_ = add_subcommand(subcommands, "run", "run a job now, and say how that went")
    run_.add_argument(
        "--dry-run", action="store_true", help="run nothing: show what a run would ask the Writer, and cost at most"
    )
    pause = add_subcommand(subcommands, "pause", "leave a job alone until it is resumed, also after a restart")
    resume = add_subcommand(subcommands, "resume", "have a paused job look for work again")
    for subcommand in (run_, pause, resume):
        subcommand.add_argument("name", type=text, metavar="NAME", help="the job")
    for subcommand in (listed, history, run_, pause, resume):
        shared(subcommand, top=False)


def run(line: Namespace) -> int:
    """List jobs or their runs, or change one. A job that was run and failed gives the exit code 1."""
    out = Output.of(line)
    with invocation.store(line) as transport:
        if line.subcommand == "history":
            request = api.JobRunsRequest(name=line.name, limit=line.limit)
            history: api.JobRunsResponse = transport.call("job_runs", request)
            out.answer(history, lambda: render.state.job_runs(history.runs))
            return 0
        if line.subcommand == "run":
            told: api.JobsResponse = transport.call("jobs", api.Nothing())
            asked = api.JobsResponse(jobs=tuple(job for job in told.jobs if job.name == line.name))
            if line.dry_run:
                if not asked.jobs:
                    raise NotFoundError(
                        f"there is no job {line.name!r}", hint=f"jobs: {', '.join(job.name for job in told.jobs)}"
                    )
                out.answer(asked, lambda: render.state.job_cost(asked.jobs[0]))
                return 0
            for job in asked.jobs:
                if job.cost is not None:
                    out.remark(render.state.job_cost(job))
            ran: api.JobRun = transport.call("run_job", api.JobRequest(name=line.name))
            if ran.problem:
                out.remark(f"{ran.job} failed: {ran.problem}")
            out.answer(ran, lambda: render.state.job_runs((ran,)))
            return 0 if ran.error is None else 1
        answer: api.JobsResponse
        if line.subcommand in {"pause", "resume"}:
            answer = transport.call(f"{line.subcommand}_job", api.JobRequest(name=line.name))
        else:
            answer = transport.call("jobs", api.Nothing())
    out.answer(answer, lambda: render.state.jobs(answer.jobs))
    return 0
