"""What the form of one line of a turn shows: code, a log, data, a quotation; or nothing, and then somebody said it.

Every pattern is anchored or bounded, so that time is linear in the line.
"""

from __future__ import annotations

import re
from enum import StrEnum

from scrubjay.distill.lexicon import any_of
from scrubjay.distill.prose import INDENTED_CODE, LIST_MARK


class LineKind(StrEnum):
    """What a line of a person's turn is."""

    OWN = "own"
    BLANK = "blank"
    BLOCK = "block"  # inside of a fence or of a tag
    QUOTE = "quote"
    CODE = "code"
    LOG = "log"  # with stack traces, terminals and consoles
    DIFF = "diff"
    DATA = "data"  # JSON, YAML, XML, CSV, tables
    MAIL = "mail"  # with forwarded chats
    DOCUMENT = "document"
    TEMPLATE = "template"  # what a program wrote in the person's name


PROMPT = re.compile(
    r"(?:\$|❯|➜) \S|PS [A-Z]:\\[^>]{0,80}>|[A-Z]:\\[^>]{0,80}>|\[?[\w.-]{1,32}@[\w.-]{1,64}[: ][^\s$#%>]{0,80}\]?[$#%>]"
)
"""Where a shell waits: what follows it up to the next prompt was printed."""

LOG = any_of(
    r"\W{0,2}\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d",
    r"\W{0,2}(?:\d\d/\d\d/\d\d(?:\d\d)? )?\d\d:\d\d:\d\d\b",
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|"
    r"Dec) {1,2}\d{1,2} \d\d:\d\d",
    r"\[(?! ?[xX]? ?\])[\w./: -]{2,40}\](?!\() ?\S",
    r"\W{0,2}(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE|CRITICAL|PANIC|FAIL|FAILED|PASS|PASSED|SKIP)\b"
    r"(?:[\]:)]|\s+[A-Z\[\d({/]|$)",
    r"(?:error|warning|fatal|panic|npm (?:ERR!|error|warn))(?:\[\w+\]| TS\d+)?:? ?(?=\S)(?<=[:!\]] )",
    r"[A-Z]\w*(?:Error|Exception|Warning|Fault)\b(?:: |$| at )",
    r"(?:Traceback \(|File \"|at [\w$.<>/]{1,200} ?\(|at [\w./\\-]{1,200}:\d+|Caused by:|Exception in thread|"
    r"goroutine \d|"
    r"thread '|stack backtrace|panicked at|Uncaught |Unhandled |Segmentation fault|[=-]{3,} (?:FAIL|RUN|PASS|SKIP|"
    r"ok)\b)",
    r"[\w./\\-]{1,200}\.[a-z]{1,5}:\d+(?::\d+)?(?:[: ]|$)",
    PROMPT.pattern,
    r"[d-][rwxsStT-]{9}[@+.]? ",
    r"[✓✔✗✘✖●○◯⎿⏺╭╰│├└┌┐┘█░▶⚠ℹ🚀✅❌♻✨]",
    r"(?:GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS) (?:/|https?:)\S{0,400} (?:HTTP|\d{3})|HTTP/\d(?:\.\d)? \d{3}",
    r"(?:\S{1,80}=\S{1,200} ){2,40}\S{1,80}=\S{1,200}$",
    r"(?:ok|FAIL|---|\?) {1,4}\t?[\w./-]{1,200}\t",
    r"(?:added|removed|changed|audited) \d+ packages?\b|\d+ files? changed,|[\w./-]{3,80} {1,60}\| {1,6}\d+ [+-]+$",
    r"(?:On branch \S+$|Your branch is|Changes (?:not staged|to be committed)|Untracked files:|nothing to commit|"
    r"\(use \"git|"
    r"(?:modified|new file|deleted|renamed): {2,}|commit [0-9a-f]{7,40}\b|Author: .{1,60}<|Merge: [0-9a-f]{7})",
    r"(?:The following (?:NEW |additional )?packages |After this operation|Reading package lists|Compiling \S+ v\d|"
    r"Downloading \S|Downloaded \S|Collecting \S+$|Requirement already|Successfully installed|"
    r"Step \d+/\d+|Sending build context|Pulling from|Digest: sha256)",
    r"\S{1,80}(?: {2,30}|\t+)\S{1,80}(?: {2,30}|\t+)\S{1,80}(?: {2,30}|\t+)\S",
)
AT_SOURCE = re.compile(r"[\w./-]{1,80}\.(?:jsx?|tsx?|mjs|py|go|rs|java|rb|cc?|cpp|php|kt|swift):\d+(?::\d+)?\)?$")
"""How a browser's console and many stack traces end a line."""

CODE = any_of(
    r"(?:async )?def \w+ ?\(|class \w+ ?(?:[(:{]|extends |implements )|"
    r"(?:pub )?(?:fn|struct|enum|trait|impl|func|function|interface)\b ?[\w<(]{0,80}[^\n]{0,200}[({;]$",
    r"(?:el)?if [^\n]{0,200}(?:[=!<>]=|[()\[\]]| not | in | is |\w\.\w)[^\n]{0,200}:$|"
    r"for \w+(?:, \w+)* in [^\n]{1,200}:$",
    r"(?:else|try|finally|except(?: [\w.(), ]{1,80})?):$|with [\w.]+\([^\n]{0,200}:$|while (?:True|"
    r"\w+ ?[<>=!(])[^\n]{0,200}:$",
    r"(?:import|from) [\w.]{1,80}(?: import [\w*, ()]{1,200}| as \w+)?;?$|import [^\n]{1,200} from [\"']|#include|"
    r"#define|#!|#\[",
    r"(?:return|import|export|using|package|throw|raise|await|const|let|var|pub|static|final|private|public|"
    r"protected)\b"
    r"[^\n]{0,300}[;{(\[]$",
    r"(?:const|let|var|val|auto|final|static|pub|mut|my|local) [^\n=]{1,80}?:?=[^\n=]",
    r"(?:return|raise|yield|assert|del)\b (?:[\w.]{1,80}[\[({]|(?:None|True|False|null|true|false|self|"
    r"this)\b[^ ]{0,80}$)",
    r"(?:pass|break|continue|end|fi|done|esac|endif)$",
    r"[\w.$\[\]\"']{1,80}(?:: ?[\w\[\], |.]{1,40})? ?(?:[+*|-]|:|\|\|)?= ?[\w\"'\[{(<$&!-][^\n]{0,300}$",
    r"\w{1,20}[\[({][^\n]{0,200} -{1,3}> |(?:graph|flowchart) (?:TD|LR|TB|BT|RL);?$|\\[a-z]{2,20}\{",
    r"[\w.$>:-]{1,80}\([^\n]{0,300}\)(?:;| ?\{|\s*[=-]>|:|\.\w+\()?$",
    r"(?:@\w[\w.]{0,60}(?:\([^\n]{0,200}\))?$|\}|\{|\)[;,.]?$|\]|//|/\*|\*/|\* @|<\?|<!--|-->|[\"']{3})",
    r"(?:SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE (?:OR REPLACE |UNIQUE )?(?:TABLE|INDEX|VIEW|"
    r"FUNCTION|DATABASE)|"
    r"ALTER TABLE|DROP TABLE|FROM \w|WHERE \w|(?:LEFT |INNER |OUTER )?JOIN \w|GROUP BY|ORDER BY|VALUES ?\(|BEGIN;|"
    r"COMMIT;)",
    r"(?:FROM|RUN|COPY|CMD|ENV|WORKDIR|EXPOSE|ENTRYPOINT) [\w\[./\"-][^\n]{0,200}$",
)
CODE_TOKENS = re.compile(
    r"=>|->|===?|!==?|&&|\|\||\+\+|::|\)\{|\};|\)\)|\(\)|\);|\]\)|\?\.|function\(|return |void 0|\bvar \w|\bconst \w|"
    r"\blet \w|\w\(\w|\w\.\w+\(|[;{}]\w|\w=[\w\"'{\[(]"
)
CODE_MARKS = re.compile(r"[{}()\[\];=<>&|$\\+*^~]")

JSON_LINE = re.compile(
    r"[\[{]\s*(?:[\"'{\[\d]|$)|[\"'][^\"'\n]{1,80}[\"']\s*:\s*\S|[\]}],?$|[\"'\d][^\n]{0,200}[\"'\d],$"
)
ENV_LINE = re.compile(r"(?:export )?[A-Z][A-Z0-9_]{2,60}=\S")
SECTION_LINE = re.compile(r"\[{1,2}[\w.:\"/-]{1,60}(?: [\w.:\"/-]{1,60})?\]{1,2}$")
TABLE_LINE = re.compile(
    r"\|[^\n]*\||[+|]?[-=:+| ]{5,}$|[^\n|]{1,80}(?:\|[^\n|]{0,80}){2,}$|[^\n\t]{0,80}\t[^\n\t]{0,80}\t"
)
XML_LINE = re.compile(r"</?[A-Za-z!?][^<>\n]{0,400}>|<!\[CDATA")

QUOTE_LINE = re.compile(r">|(?:On|Am|Le|El) .{6,100}(?:wrote|schrieb|écrit|escribió)\W{0,2}$")

MINIFIED_MIN_CHARS = 40
MINIFIED_TOKENS_PER_CHAR = 1 / 28
LONGEST_SOURCE = 100
MARKS_SHARE = 0.07
"""Operators and brackets per visible character from which a line is code: prose has below .02, minified code .15."""

SHAPES = (
    (QUOTE_LINE, LineKind.QUOTE),
    (LOG, LineKind.LOG),
    (XML_LINE, LineKind.DATA),
    (TABLE_LINE, LineKind.DATA),
    (JSON_LINE, LineKind.DATA),
    (ENV_LINE, LineKind.DATA),
    (SECTION_LINE, LineKind.DATA),
    (CODE, LineKind.CODE),
)
"""The shapes of a line, the surest first."""


def shape(line: str, bare: str) -> LineKind:
    """Return what the form of a line alone says."""
    if not bare:
        return LineKind.BLANK
    if LIST_MARK.match(line):
        line = bare = LIST_MARK.sub("", line)
        return LineKind.CODE if is_dense(bare) else LineKind.OWN
    for pattern, kind in SHAPES:
        if pattern.match(bare):
            return kind
    if INDENTED_CODE.match(line) or is_dense(bare):
        return LineKind.CODE
    return LineKind.LOG if AT_SOURCE.search(bare[-LONGEST_SOURCE:]) else LineKind.OWN


def is_dense(bare: str) -> bool:
    """Say whether operators and brackets stand in a line as only a program has them: minified code, a long command."""
    if len(bare) < MINIFIED_MIN_CHARS:
        return False
    marks = len(CODE_MARKS.findall(bare))
    if marks < MARKS_SHARE * len(bare) / 2:
        return False
    tokens = len(CODE_TOKENS.findall(bare))
    return tokens >= MINIFIED_TOKENS_PER_CHAR * len(bare) or (tokens > 2 and marks >= MARKS_SHARE * len(bare))
