"""`scrubjay writer`: see what could be the Writer and what it would cost; turn it on after a yes, and off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrubjay import api
from scrubjay import settings as options
from scrubjay.accounts import MAIN
from scrubjay.cli import invocation, render
from scrubjay.cli.agreeing import agree, can_ask
from scrubjay.cli.arguments import Parser, add_subcommand, shared, text
from scrubjay.cli.invocation import nothing
from scrubjay.cli.output import Output, remarks
from scrubjay.cli.reports import WriterChoice, WriterReport
from scrubjay.cli.writer_choices import KEYS, NAMES, found
from scrubjay.model_choice import Origin
from scrubjay.setting_values import is_this_machine
from scrubjay.writer.agents import AGENTS
from scrubjay.writer.configured import OFF
from scrubjay_shared.errors import InvalidError, NotFoundError, ScrubjayError, from_code

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from scrubjay.settings import Settings
    from scrubjay.transports.local import Transport


def configure(parser: Parser) -> None:
    """Take what to do about the Writer."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=False)
    status = add_subcommand(subcommands, "status", "show what is on, its last call, and what is used of the caps")
    find = add_subcommand(subcommands, "find", "look for what could be the Writer; nothing is sent off this machine")
    on = add_subcommand(subcommands, "on", "say what it is sent, test it with one call, and turn it on after a yes")
    on.add_argument("name", nargs="?", type=text, metavar="NAME", help="one that scrubjay writer find lists")
    on.add_argument("--model", type=text, metavar="NAME", help="the model, as the server or the agent names it")
    on.add_argument("--url", type=text, metavar="URL", help="another server, which speaks chat completions")
    on.add_argument("--key-env", type=text, metavar="VARIABLE", help="the variable that holds its key, never the key")
    on.add_argument("--yes", action="store_true", help="agree in advance, as where no terminal is")
    off = add_subcommand(subcommands, "off", "ask no model any more; its settings stay for the next time")
    for subcommand in (status, find, on, off):
        shared(subcommand, top=False)


def run(line: Namespace) -> None:
    """Show the Writer and what could be one, or change it."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    if line.subcommand in {"on", "off"}:
        _check_may_change(chosen)
    match line.subcommand:
        case "on":
            report = _turned_on(line, chosen, out)
        case "off":
            report = _changed(line, chosen, {"writer": OFF})
        case _:
            with invocation.store(line) as store:
                status: api.WriterResponse = store.call("writer", api.Nothing())
            looks = line.subcommand == "find" or (line.subcommand is None and status.writer == OFF)
            report = WriterReport(status=status, choices=found(os.environ) if looks else ())
            out.answer(report, lambda: render.writers.shown(report, looked=looks))
            return
    out.answer(report, lambda: render.writers.changed(report))


def _check_may_change(chosen: Settings) -> None:
    """Check that config.toml decides. Raises InvalidError where something else does."""
    if chosen.account != MAIN:
        raise InvalidError("the Writer is one for all accounts", hint="leave out --account (SCRUBJAY_ACCOUNT)")
    for key in options.WRITER_KEYS:
        if chosen.origins.get(key) is Origin.ENVIRONMENT:
            variable = options.OPTIONS[key].variable
            raise InvalidError(
                f"{variable} is set in the environment, and outweighs {chosen.config_path}",
                hint=f"unset {variable}, then try again",
            )


def _turned_on(line: Namespace, chosen: Settings, out: Output) -> WriterReport:
    choice, model = _meant(line)
    assigned = dict(zip(options.WRITER_KEYS, (choice.writer, choice.url, model, choice.key_env), strict=True))
    wanted = options.writer_assigned(chosen, assigned)
    if not (line.yes or can_ask()):
        raise InvalidError(
            f"turning on {choice.name} has {render.writers.DATA} sent to {choice.destination}, and nobody can be asked",
            hint="scrubjay writer on … --yes agrees where no terminal is",
        )
    request = api.WriterRequest(
        writer=wanted.writer, url=wanted.writer_url, model=wanted.writer_model, key_env=wanted.writer_key_env
    )
    with invocation.store(line) as store:
        status: api.WriterResponse = store.call("writer", api.Nothing())
        told = nothing if line.yes and out.quiet else _tell
        for words in render.writers.before(choice, model, status):
            told(words)
        trial = _tried(store, request)
        told(render.writers.tried(trial))
    if not line.yes:
        agree(f"Turn on {choice.name} as the Writer?", refusal="", hint="nothing else was sent than the test")
    report = _changed(line, chosen, {key: assigned[key] or None for key in options.WRITER_KEYS})
    return WriterReport(status=report.status, trial=trial, daemon=report.daemon)


def _tell(words: str) -> None:
    """Say what a person must know before they agree, also where remarks are not wanted."""
    remarks().print(render.words.clean(words), markup=False)


def _tried(store: Transport, request: api.WriterRequest) -> api.WriterTrial:
    try:
        trial: api.WriterTrial = store.call("try_writer", request)
    except ScrubjayError as error:
        message = f"the test call failed, and nothing was changed: {error.message}"
        raise from_code(error.code, message, _remedy(request, error)) from error
    return trial


def _remedy(request: api.WriterRequest, error: ScrubjayError) -> str:
    """Return what to do about a test that failed, in words of this command."""
    if isinstance(error, NotFoundError) and request.url:
        here = is_this_machine(urlsplit(request.url).hostname or "")
        return "scrubjay writer find lists its models" if here else "check --model, as its provider writes it"
    if request.key_env and "is not set" in error.message:
        return f"the daemon does not see it: scrubjay daemon restart, from a terminal that has {request.key_env}"
    if request.writer in AGENTS and isinstance(error, NotFoundError):
        return f"the daemon does not find it: scrubjay daemon restart, from a terminal in which {request.writer} runs"
    return error.hint


def _changed(line: Namespace, chosen: Settings, assigned: dict[str, str | None]) -> WriterReport:
    """Write the settings, and have the daemon follow them."""
    options.assign(chosen.config_path, assigned)
    wanted = options.writer_reread(chosen)
    with invocation.store(line) as store:
        status: api.WriterResponse = store.call("use_writer", api.UseWriterRequest())
        runs = store.through == "daemon"
    follows = status.writer == wanted.writer and (
        status.writer == OFF
        or (status.url, status.model, status.key_env)
        == (wanted.writer_url, wanted.writer_model or wanted.writer, wanted.writer_key_env)
    )
    return WriterReport(status=status, daemon="stopped" if not runs else "follows" if follows else "restart")


def _meant(line: Namespace) -> tuple[WriterChoice, str]:
    """Return the choice that a person means, and its model. Raises InvalidError, NotFoundError."""
    choice = _own_server(line) if line.url is not None else _named(line.name, found(os.environ))
    if line.key_env is not None and line.url is None:
        raise InvalidError("--key-env is of a server that --url names", hint="leave it out, or add --url")
    if line.model is not None:
        return choice, line.model
    if choice.writer in AGENTS or len(choice.models) == 1:
        return choice, choice.models[0] if choice.models else ""
    if choice.models:
        raise InvalidError(
            f"which model of {choice.name}? it has {', '.join(choice.models)}",
            hint=f"scrubjay writer on {choice.name} --model {choice.models[0]}",
        )
    raise InvalidError(
        f"which model of {choice.destination}?",
        hint="add --model NAME, as its provider writes it; a small one is enough",
    )


def _own_server(line: Namespace) -> WriterChoice:
    if line.name not in {None, *options.WRITER_SERVERS}:
        raise InvalidError(f"{line.name[:40]} has no --url", hint=f"with --url: {' or '.join(options.WRITER_SERVERS)}")
    address = urlsplit(line.url)
    here = is_this_machine(address.hostname or "")
    return WriterChoice(
        name=address.netloc or line.url,
        writer=line.name or "openai",
        url=line.url,
        key_env=line.key_env or "",
        destination=address.netloc,
        leaves=not here,
        paid_by="nobody" if here and not line.key_env else "key",
    )


def _named(name: str | None, choices: Sequence[WriterChoice]) -> WriterChoice:
    there = {choice.name: choice for choice in choices}
    if name is None and len(there) == 1:
        return choices[0]
    listed = f"found here: {', '.join(there)}" if there else "nothing was found here: scrubjay docs writer"
    if name is None:
        raise InvalidError("which Writer?", hint=f"scrubjay writer on NAME; {listed}")
    if name in there:
        return there[name]
    if name not in NAMES:
        raise InvalidError(f"there is no Writer {name[:40]!r}", hint=listed)
    if name in KEYS:
        raise NotFoundError(f"{KEYS[name][0]} is not set here", hint=f"export {KEYS[name][0]}=…, then try again")
    if name in AGENTS:
        raise NotFoundError(f"{name} is not in PATH", hint=f"install it and log in; {listed}")
    raise NotFoundError(
        f"no {name} with a model that writes answers on this machine", hint=f"start it, with a model in it; {listed}"
    )
