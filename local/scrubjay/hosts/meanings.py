"""The hosts and the names of their events, as tables: what each means to memory, and where a payload holds what.

Almost every host took over the shape of Claude Code's hooks, with other spellings: so names are compared without case
and punctuation, in one table for all, and fields are looked for under all the names they have anywhere. A new host, or
a new version of one, is a row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

HOSTS = ("claude-code", "codex", "gemini", "copilot", "opencode", "cursor")
"""The hosts that `scrubjay setup` registers hooks with, by the name their events are stored under."""

OTHER_NAMES = MappingProxyType(
    {"claude": "claude-code", "claudecode": "claude-code", "geminicli": "gemini", "copilotcli": "copilot"}
)


class Meaning(StrEnum):
    """What a host's event means to memory."""

    START = "start"
    PROMPT = "prompt"
    TOOL = "tool"
    FAILURE = "failure"
    ANSWER = "answer"
    COMPACTING = "compacting"
    COMPACTED = "compacted"
    HELPER_START = "helper_start"
    HELPER_STOP = "helper_stop"
    END = "end"
    NOTHING = "nothing"


def folded(name: str) -> str:
    """Return an event's name without case, punctuation, and the words that plugins put before it.

    >>> folded("event session.created"), folded("experimental.text.complete"), folded("UserPromptSubmit")
    ('sessioncreated', 'textcomplete', 'userpromptsubmit')
    """
    plain = "".join(character for character in name.casefold() if character.isalnum())
    for prefix in ("event", "experimental"):
        plain = plain.removeprefix(prefix)
    return plain


def host_name(name: str) -> str:
    """Return the name under which a host's events are stored.

    >>> host_name("claude"), host_name("Codex")
    ('claude-code', 'codex')
    """
    plain = name.strip().casefold()
    return OTHER_NAMES.get(folded(plain), plain)


MEANINGS: MappingProxyType[str, Meaning] = MappingProxyType(
    {
        "sessionstart": Meaning.START,
        "sessioncreated": Meaning.START,
        "taskstart": Meaning.START,
        "userpromptsubmit": Meaning.PROMPT,
        "userpromptsubmitted": Meaning.PROMPT,
        "beforeagent": Meaning.PROMPT,
        "beforesubmitprompt": Meaning.PROMPT,
        "chatmessage": Meaning.PROMPT,
        "preuserprompt": Meaning.PROMPT,
        "posttooluse": Meaning.TOOL,
        "aftertool": Meaning.TOOL,
        "toolexecuteafter": Meaning.TOOL,
        "executeafter": Meaning.TOOL,
        "posttoolusefailure": Meaning.FAILURE,
        "stop": Meaning.ANSWER,
        "agentstop": Meaning.ANSWER,
        "afteragent": Meaning.ANSWER,
        "afteragentresponse": Meaning.ANSWER,
        "textcomplete": Meaning.ANSWER,
        "postcascaderesponse": Meaning.ANSWER,
        "precompact": Meaning.COMPACTING,
        "sessioncompacting": Meaning.COMPACTING,
        "postcompact": Meaning.COMPACTED,
        "sessioncompacted": Meaning.COMPACTED,
        "subagentstart": Meaning.HELPER_START,
        "subagentstop": Meaning.HELPER_STOP,
        "sessionend": Meaning.END,
        "sessiondeleted": Meaning.END,
        "dispose": Meaning.END,
        # Known, and never stored. A tool that is about to run says nothing that its result does not, and the words of
        # a model are complete only at the end. PostToolBatch repeats every result; Gemini CLI's PreCompress comes
        # before each request to the model, compaction or not; Cursor's "after" events repeat its postToolUse.
        **dict.fromkeys(
            (
                "afteragentthought",
                "afterfileedit",
                "aftermcpexecution",
                "aftermodel",
                "aftershellexecution",
                "beforemcpexecution",
                "beforemodel",
                "beforereadfile",
                "beforeshellexecution",
                "beforetool",
                "beforetoolselection",
                "chatsystemtransform",
                "configchange",
                "cwdchanged",
                "directoryadded",
                "elicitation",
                "elicitationresult",
                "erroroccurred",
                "filechanged",
                "instructionsloaded",
                "interrupt",
                "load",
                "messagedisplay",
                "notification",
                "permissiondenied",
                "permissionrequest",
                "postmodelrequest",
                "postmodelswitch",
                "posttoolbatch",
                "precompress",
                "premodelrequest",
                "premodelswitch",
                "pretooluse",
                "sessionerror",
                "sessionidle",
                "setup",
                "stopfailure",
                "systemtransform",
                "taskcompleted",
                "taskcreated",
                "teammateidle",
                "toolexecutebefore",
                "userpromptexpansion",
                "userprompttransformed",
                "workspaceopen",
                "worktreecreate",
                "worktreeremove",
            ),
            Meaning.NOTHING,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What is peculiar to one host.

    `context` are the meanings at which it takes text back. `words_in_transcript` says that its stop has no words.
    """

    context: frozenset[Meaning] = frozenset({Meaning.START, Meaning.PROMPT})
    words_in_transcript: bool = False


PECULIAR: MappingProxyType[str, Host] = MappingProxyType(
    {
        "copilot": Host(words_in_transcript=True),
        "cursor": Host(context=frozenset({Meaning.START})),
    }
)
PLAIN = Host()

NAMES = ("hook_event_name", "hookEventName", "hookName", "agent_action_name", "event_type", "event")
SESSIONS = (
    "session_id",
    "sessionId",
    "sessionID",
    "input.sessionID",
    "conversation_id",
    "trajectory_id",
    "taskId",
    "output.message.sessionID",
    "info.id",
)
FOLDERS = ("cwd", "directory", "info.directory", "workspace_roots.0", "workspaceRoots.0", "tool_info.cwd")
TURNS = ("prompt_id", "promptId", "turn_id", "generation_id", "execution_id", "input.messageID", "output.message.id")
CALLS = ("tool_use_id", "toolUseId", "input.callID", "callID", "call_id", "toolCallId", "input.partID")
TIMES = ("timestamp", "output.message.time.created", "info.time.created")
TRANSCRIPTS = ("transcript_path", "transcriptPath")
TOOLS = ("tool_name", "toolName", "input.tool", "tool")
SERVERS = ("mcp_server.name", "mcp_context.server_name", "mcpServerName", "server_name")
INPUTS = ("tool_input", "toolArgs", "input.args", "output.args", "args", "input")
OUTPUTS = (
    "tool_response",
    "tool_result",
    "toolResult",
    "tool_output",
    "result_json",
    "mcp_result",
    "error",
    "error_message",
    "output",
    "result",
)
PROMPTS = ("prompt", "message", "tool_info.user_prompt", "userPromptSubmit.prompt", "output.parts")
ANSWERS = (
    "last_assistant_message",
    "lastAssistantMessage",
    "prompt_response",
    "output.text",
    "text",
    "response",
    "tool_info.response",
)
SUMMARIES = ("compact_summary", "compactSummary", "summary")
SOURCES = ("source", "trigger", "reason", "stop_reason", "stopReason")

ABOUT: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "source": ("source",),
        "trigger": ("trigger",),
        "reason": ("reason", "stop_reason", "stopReason"),
        "model": ("model", "output.message.model.modelID"),
        "helper": ("agent_type", "agentType", "agentName"),
        "helper_id": ("agent_id", "agentId"),
        "prompt_id": ("prompt_id", "promptId"),
        "turn_id": ("turn_id", "generation_id"),
    }
)
"""What is kept beside the words of an event, and under which names a payload may hold it."""

NOT_PERSONS = frozenset(("system", "loop_wakeup", "schedule_wakeup", "poll_event"))
"""`source` of a prompt that a program made; a person's is "user", a script's "sdk", and older versions say nothing."""

MADE_BY_PROGRAM = (
    "<command-message>",
    "<command-name>",
    "<command-args>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<task-notification>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "Caveat:",
    "[Request interrupted",
    "This session is being continued from a previous conversation",
)
"""How a prompt begins that a host wrote in the person's name."""

SILENT_TOOLS = frozenset(("toolsearch",))
"""Claude Code's tool that looks for tools: what it finds are their names."""
