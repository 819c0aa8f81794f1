"""A model server of four dialects on loopback, for driving real coding agents offline.

Speaks: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini generateContent; streaming and not.
The script is fixed: a conversation that offers a tool called …memory_search is answered with one call of that, then one
that offers a shell tool with one call of that, then with a text (before them a tool search, where one is offered). So one run of an agent makes prompt, tool calls, their
results and a final answer. With a `script` no tool is called: it is given all strings of a request and returns the answer and
the tokens to report, read and written. What was asked is logged: names of the tools offered, the blocks of memory in the
request, and with a script the bytes of the request and what was answered.
Standard library only.
"""

import html
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMAND = "echo scrubjay-live-42"
ANSWER = "The command printed scrubjay-live-42. We decided to keep the cart store on SQLite WAL."
MEMORY_BLOCK = re.compile(r"<memory source=\"scrubjay\".*?</memory>", re.DOTALL)
MEMORY = re.compile(r"memory_search$")
SEARCH = re.compile(r"^ToolSearch$")  # Claude Code loads the tools of MCP servers only when the model asks for them
SHELL = re.compile(
    r"^(bash|shell|shell_command|exec_command|local_shell|run_shell_command|run_in_terminal)$", re.IGNORECASE
)


def offered(tools, space=""):
    """(namespace, name, parameters) of every function offered, in any dialect's nesting."""
    for tool in tools or []:
        inner = (
            tool.get("functionDeclarations")
            or tool.get("function_declarations")
            or (tool.get("tools") if tool.get("type") == "namespace" else None)
        )
        if inner:
            yield from offered(inner, tool.get("name") or "")
        else:
            body = tool.get("function") or tool
            schema = body.get("parameters") or body.get("input_schema") or body.get("parametersJsonSchema") or {}
            yield space, body.get("name") or tool.get("type") or "?", schema.get("properties") or {}


def strings(value):
    """Every string in a request, wherever it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def next_call(tools, done):
    """The call to make now that `done` calls have been made: memory first, then the shell; None when all is done."""
    plan = []
    for wanted in (SEARCH, MEMORY, SHELL):
        plan += [tool for tool in offered(tools) if wanted.search(tool[1])][:1]
    return plan[done] if done < len(plan) else None


def arguments(properties):
    """What to call it with: only names that its schema has, so that no agent refuses the call."""
    value = {}
    for name, schema in properties.items():
        if name in ("command", "cmd"):
            value[name] = ["bash", "-lc", COMMAND] if schema.get("type") == "array" else COMMAND
        elif name == "description":
            value[name] = "print one line"
        elif name == "query":
            value[name] = "select:mcp__scrubjay__memory_search" if "max_results" in properties else "cart store"
    return value or {"command": COMMAND}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_path = None
    script = None
    said, counts = ANSWER, (10, 5)

    def log_message(self, *_):
        pass

    def note(self, **entry):
        if self.log_path:
            with open(self.log_path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"at": round(time.time(), 3), **entry}) + "\n")

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(data or b"{}")
        except ValueError:
            body = {}
        self.memory = list(
            dict.fromkeys(block for text in strings(body) for block in MEMORY_BLOCK.findall(html.unescape(text)))
        )
        return body

    def answer(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, events, done=None):
        """Server-sent events; each is (name or None, object)."""
        data = b""
        for name, value in events:
            data += (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"
        data += f"data: {done}\n\n".encode() if done else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_HEAD(self):
        self.answer({})

    def do_GET(self):
        self.note(method="GET", path=self.path)
        if self.path.split("?")[0].endswith("/models"):
            self.answer(
                {
                    "object": "list",
                    "data": [
                        {
                            "id": "stub-1",
                            "object": "model",
                            "type": "model",
                            "display_name": "stub",
                            "created": 1,
                            "created_at": "2026-01-01T00:00:00Z",
                            "owned_by": "stub",
                        }
                    ],
                    "models": [],
                    "has_more": False,
                }
            )
        else:
            self.answer({"error": {"type": "not_found_error", "message": "no such path"}}, 404)

    def do_POST(self):
        path, body = self.path.split("?")[0], self.body()
        scripted = {}
        if Handler.script:
            found = Handler.script(list(strings(body)))
            self.said, self.counts = found[0], found[1:]
            size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
            scripted = {
                "bytes": size,
                "said": found[0],
                "counts": found[1:],
                "system": body.get("system"),
                "body": body,
            }
        names = [f"{space}/{name}" if space else name for space, name, _ in offered(body.get("tools"))]
        self.note(
            method="POST",
            path=path,
            model=body.get("model"),
            stream=body.get("stream"),
            memory=self.memory,
            tools=names,
            **scripted,
        )
        if Handler.script:
            body.pop("tools", None)
        if path.endswith("/count_tokens"):
            self.answer({"input_tokens": 10})
        elif path.endswith("/v1/messages"):
            self.say_messages(body)
        elif path.endswith("/responses"):
            self.say_responses(body)
        elif path.endswith("/chat/completions"):
            self.say_chat(body)
        elif ":countTokens" in path:
            self.answer({"totalTokens": 10})
        elif "enerateContent" in path:
            self.say_gemini(body, "stream" in path)
        else:
            self.answer({}, 200)

    # Anthropic Messages

    def say_messages(self, body):
        done = sum(
            b.get("type") == "tool_result"
            for m in body.get("messages", [])
            if isinstance(m.get("content"), list)
            for b in m["content"]
        )
        tool = next_call(body.get("tools"), done)
        block = (
            {"type": "tool_use", "id": f"toolu_stub_{done}", "name": tool[1], "input": arguments(tool[2])}
            if tool
            else {"type": "text", "text": self.said}
        )
        stop = "tool_use" if tool else "end_turn"
        usage = {
            "input_tokens": self.counts[0],
            "output_tokens": self.counts[1],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        message = {
            "id": f"msg_{time.time_ns()}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [block],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            self.answer(message)
            return
        start = {**block, "input": {}} if tool else {**block, "text": ""}
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            if tool
            else {"type": "text_delta", "text": self.said}
        )
        events = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": {"output_tokens": self.counts[1]},
            },
            {"type": "message_stop"},
        ]
        self.stream([(e["type"], e) for e in events])

    # OpenAI Responses

    def say_responses(self, body):
        done = sum(
            str(i.get("type", "")).endswith("_call_output") for i in body.get("input") or [] if isinstance(i, dict)
        )
        tool = next_call(body.get("tools"), done)
        if tool:
            item = {
                "type": "function_call",
                "id": f"fc_{done}",
                "call_id": f"call_stub_{done}",
                "name": tool[1],
                "arguments": json.dumps(arguments(tool[2])),
                "status": "completed",
            }
            if tool[0]:
                item["namespace"] = tool[0]
        else:
            item = {
                "type": "message",
                "id": "m_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": self.said, "annotations": []}],
            }
        usage = {
            "input_tokens": self.counts[0],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": self.counts[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(self.counts),
        }
        whole = {
            "id": f"resp_{time.time_ns()}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": body.get("model"),
            "output": [item],
            "usage": usage,
        }
        if not body.get("stream"):
            self.answer(whole)
            return
        events = [
            {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
        ]
        if not tool:
            events.append(
                {
                    "type": "response.output_text.delta",
                    "item_id": "m_1",
                    "output_index": 0,
                    "content_index": 0,
                    "delta": self.said,
                }
            )
        events += [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        self.stream([(e["type"], {"sequence_number": i, **e}) for i, e in enumerate(events)])

    # OpenAI Chat Completions

    def say_chat(self, body):
        done = sum(m.get("role") == "tool" for m in body.get("messages", []))
        tool = next_call(body.get("tools"), done)
        message = {"role": "assistant", "content": None if tool else self.said}
        if tool:
            message["tool_calls"] = [
                {
                    "index": 0,
                    "id": f"call_stub_{done}",
                    "type": "function",
                    "function": {"name": tool[1], "arguments": json.dumps(arguments(tool[2]))},
                }
            ]
        stop = "tool_calls" if tool else "stop"
        head = {"id": f"chatcmpl-{time.time_ns()}", "created": int(time.time()), "model": body.get("model")}
        usage = {"prompt_tokens": self.counts[0], "completion_tokens": self.counts[1], "total_tokens": sum(self.counts)}
        if not body.get("stream"):
            self.answer(
                {
                    **head,
                    "object": "chat.completion",
                    "choices": [{"index": 0, "message": message, "finish_reason": stop}],
                    "usage": usage,
                }
            )
            return
        head["object"] = "chat.completion.chunk"
        self.stream(
            [
                (None, {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
                (None, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage}),
            ],
            done="[DONE]",
        )

    # Gemini

    def say_gemini(self, body, streaming):
        parts = [p for c in body.get("contents", []) for p in c.get("parts", [])]
        tool = next_call(body.get("tools"), sum("functionResponse" in p for p in parts))
        part = {"functionCall": {"name": tool[1], "args": arguments(tool[2])}} if tool else {"text": self.said}
        if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            part = {
                "text": json.dumps(
                    {
                        "model_choice": "flash",
                        "reasoning": "stub",
                        "complexity_reasoning": "stub",
                        "complexity_score": 1,
                        "next_speaker": "user",
                    }
                )
            }
        value = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": dict(
                zip(("promptTokenCount", "candidatesTokenCount", "totalTokenCount"), (*self.counts, sum(self.counts)))
            ),
            "modelVersion": "stub",
        }
        self.stream([(None, value)]) if streaming else self.answer(value)


def serve(port=0, log=None, script=None):
    """Start in a thread; returns the server, whose server_address[1] is the port."""
    Handler.log_path, Handler.script = log, staticmethod(script) if script else None
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
