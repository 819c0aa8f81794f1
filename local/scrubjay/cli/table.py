"""The table of the commands: what help says of each, so that help need not import them."""

from __future__ import annotations

from collections import namedtuple
from keyword import iskeyword


class Command(namedtuple("Command", ("name", "summary", "answer", "example"))):  # noqa: PYI024  # typing would cost a tenth of the start
    """A command. `answer` names the record that it prints as JSON, "" where it prints text either way."""

    __slots__ = ()

    @property
    def module(self) -> str:
        """The name of its module, which has `configure` and `run`."""
        taken = iskeyword(self.name) or self.name == "list"
        return f"scrubjay.cli.commands.{self.name}{'_' if taken else ''}"


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("demo", "see it work: a real daemon, a sample conversation, five questions", "", "scrubjay demo"),
        Command("init", "make the folders, and fetch the models", "InitReport", "scrubjay init --no-model"),
        Command(
            "add",
            "remember something",
            "Entry",
            'scrubjay add "We chose PostgreSQL for its exclusion constraints" --type decision --name database',
        ),
        Command(
            "recall",
            "ask a question",
            "RecallResponse",
            'scrubjay recall "which database did we choose?" --since "30 days ago" --why',
        ),
        Command(
            "ask",
            "have the writer answer a question from what is remembered, with citations",
            "AskResponse",
            'scrubjay ask "which database did we choose, and why?"',
        ),
        Command(
            "learn",
            "learn from a text, and show what is kept of it and why",
            "LearnResponse",
            'scrubjay learn "From now on we use uv, not poetry" --explain --dry-run',
        ),
        Command(
            "relearn",
            "read sessions anew of which a lesser reader learned, and replace what it made of them",
            "RelearnResponse",
            "scrubjay relearn --yes",
        ),
        Command(
            "route",
            "find where the answer to a question stands, and say how",
            "RouteResponse",
            'scrubjay route "what did we decide last Tuesday?"',
        ),
        Command(
            "teleport",
            "jump to places in the table of contents, by words or meaning",
            "TeleportResponse",
            'scrubjay teleport "token refresh" --mode keyword',
        ),
        Command("get", "show one memory", "Entry", "scrubjay get database"),
        Command(
            "list",
            "page through memories: what agents are handed first; in JSON the newest first",
            "ListResponse",
            "scrubjay list --type goal",
        ),
        Command("update", "rewrite a memory or its fields", "Entry", "scrubjay update database --salience 0.9"),
        Command(
            "supersede",
            "let another memory take one's place",
            "SupersedeResponse",
            'scrubjay supersede database "We moved to MySQL 9"',
        ),
        Command("alias", "give a memory one more name", "Entry", "scrubjay alias database postgres"),
        Command("rename", "give a memory another name", "Entry", "scrubjay rename database storage"),
        Command(
            "forget", "erase a memory, and the words it was read from", "ForgetResponse", "scrubjay forget database"
        ),
        Command("why", "show where a memory comes from", "WhyResponse", "scrubjay why database"),
        Command("trace", "show the whole way of a memory or a request", "TraceResponse", "scrubjay trace database"),
        Command("feedback", "say whether memories helped", "FeedbackResponse", "scrubjay feedback database --helped"),
        Command("history", "list what changed the memory", "HistoryResponse", "scrubjay history --kind import"),
        Command(
            "undo",
            "take back what a run or a request wrote",
            "UndoResponse",
            "scrubjay undo 01KXK2Y3 --dry-run",
        ),
        Command(
            "consolidate",
            "merge what is there twice, end what was outdated, and compress old detail",
            "ConsolidateResponse",
            "scrubjay consolidate --dry-run",
        ),
        Command(
            "diff",
            "show what became of memories since a run or a time",
            "DiffResponse",
            "scrubjay diff --since yesterday",
        ),
        Command(
            "review",
            "list what waits for your review, accept or reject it",
            "ReviewResponse",
            "scrubjay review accept 01KXK2Y3",
        ),
        Command(
            "projects",
            "list the folders that claim a project, trust one or refuse it",
            "ProjectsResponse",
            "scrubjay projects trust ~/code/shop",
        ),
        Command(
            "audit",
            "count duplicates, echoes, junk, and what stands where it should not",
            "AuditResponse",
            "scrubjay audit",
        ),
        Command(
            "conflicts",
            "list memories that may contradict earlier ones, and what two devices changed unseen",
            "ConflictsResponse",
            "scrubjay conflicts --keep database content shown",
        ),
        Command(
            "brief",
            "show a project's brief, which agents are handed first; pin lines to it",
            "BriefResponse",
            "scrubjay brief --pin 01KXK2Y3",
        ),
        Command(
            "context",
            "show or set what an agent loads at its start",
            "ContextResponse",
            'scrubjay context --identity name=Maya --active task="the booking beta"',
        ),
        Command(
            "active",
            "show what is active and what is proposed for it; confirm or dismiss that",
            "ActiveResponse",
            "scrubjay active confirm 01KXK2Y3",
        ),
        Command(
            "toc",
            "walk through what was said by time: years, months, weeks, days, segments",
            "TocResponse",
            "scrubjay toc 2026-11",
        ),
        Command(
            "timeline",
            "show what was talked of between two times",
            "TimelineResponse",
            'scrubjay timeline --from "7 days ago" --to today',
        ),
        Command(
            "grip",
            "show a passage that a bullet or a memory was taken from, and what was said around it",
            "GripResponse",
            "scrubjay grip expand grip:01KXK2Y3Z4A5B6C7D8E9F0G1H2:0-54 --before 3",
        ),
        Command("events", "page through what was said", "EventsResponse", "scrubjay events --since today"),
        Command("sessions", "list the sessions", "SessionsResponse", "scrubjay sessions"),
        Command(
            "compact",
            "put the beginning of a session into an archive",
            "CompactResponse",
            "scrubjay compact 5f0c1c1e-6a0e-4b0c",
        ),
        Command(
            "replay",
            "show a session from its latest compaction on",
            "ReplayResponse",
            "scrubjay replay 5f0c1c1e-6a0e-4b0c",
        ),
        Command(
            "agents",
            "list the agents, and what they did on which days",
            "AgentsResponse",
            'scrubjay agents activity --agent codex --from "2 weeks ago" --bucket week',
        ),
        Command(
            "ingest", "take in events, one JSON object per line", "IngestReport", "scrubjay ingest events.jsonl --wait"
        ),
        Command(
            "import",
            "learn from transcripts, conversations and notes",
            "ImportReport",
            "scrubjay import ~/.claude/projects --dry-run",
        ),
        Command(
            "reconcile",
            "store what hooks missed, out of the hosts' own transcripts",
            "ReconcileReport",
            "scrubjay reconcile codex --since yesterday",
        ),
        Command(
            "export", "write everything out, one JSON record per line", "ExportReport", "scrubjay export all.ndjson"
        ),
        Command(
            "vault",
            "keep an agent's memory as plain files that anybody edits",
            "VaultsResponse",
            "scrubjay vault init ~/vaults/zara --agent zara",
        ),
        Command("backup", "copy the store while it is in use, and check the copy", "PathResponse", "scrubjay backup"),
        Command(
            "restore", "put a backup in place of the store", "RestoreReport", "scrubjay restore scrubjay-2026-11-21.db"
        ),
        Command("salvage", "make a new store of what a damaged one still holds", "SalvageReport", "scrubjay salvage"),
        Command("rebuild", "derive everything again from events and ops", "RebuildResponse", "scrubjay rebuild"),
        Command("models", "list, fetch and choose models", "ModelsResponse", "scrubjay models pull"),
        Command("daemon", "start, stop and watch the daemon", "StatusResponse", "scrubjay daemon start"),
        Command("mcp", "connect an agent: MCP over stdin and stdout, through the daemon", "", "scrubjay mcp"),
        Command(
            "cost",
            "show what the writer used, and what is left",
            "CostResponse",
            "scrubjay cost --by month,model",
        ),
        Command(
            "writer",
            "let a language model read what was said: find one, what it costs, turn it on or off",
            "WriterReport",
            "scrubjay writer on ollama --model qwen3:8b",
        ),
        Command("jobs", "list, run and pause the background jobs", "JobsResponse", "scrubjay jobs history learn"),
        Command(
            "setup",
            "let Claude Code, Codex and other agents remember: hooks, MCP, commands",
            "SetupReport",
            "scrubjay setup claude-code --dry-run",
        ),
        Command(
            "uninstall",
            "take scrubjay out of every agent, stop its daemon, and say what stays",
            "UninstallReport",
            "scrubjay uninstall --dry-run",
        ),
        Command("doctor", "check everything, and say what to do", "DoctorReport", "scrubjay doctor"),
        Command("docs", "read the documents that came with the program", "", "scrubjay docs guide"),
        Command(
            "verify",
            "compare everything in a store with what it was made from",
            "VerifyReport",
            "scrubjay verify copy.db --key copy.db.key.json",
        ),
        Command(
            "perturb",
            "falsify a copy of the store, for experiments",
            "PerturbReport",
            "scrubjay perturb copy.db --seed 7 --corrupt 5",
        ),
        Command("stats", "show counts and sizes", "StatsResponse", "scrubjay stats"),
        Command(
            "completion",
            "print a completion script for a shell",
            "",
            "scrubjay completion bash > ~/.local/share/bash-completion/completions/scrubjay",
        ),
    )
}
"""Every command of this package by its name, in the order of help."""
