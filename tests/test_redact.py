"""Credentials, private passages and our own echoes never reach the store; everything else does, unchanged."""

from __future__ import annotations

import base64
import contextlib
import html
import json
import random
import re
import string
import threading
import time
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planted_secrets
from scrubjay.policy import DEFAULT
from scrubjay.redaction import (
    INJECTED_CLOSE,
    INJECTED_OPEN,
    Cleaned,
    Redaction,
    blocks,
    clean,
    clean_json,
    defused,
    injected,
    pipeline,
    redact,
    spans,
    windows,
)
from scrubjay.redaction.rules import KINDS, RULES
from scrubjay_shared.errors import InvalidError

# No credential stands in this file, not even a made-up one: each is drawn here, so that no scanner stops at it.

HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
BASE32 = string.ascii_uppercase + "234567"
WORD = string.ascii_letters + string.digits


def drawn(length: int, alphabet: str = WORD, seed: int = 7) -> str:
    return "".join(random.Random(f"{seed}:{length}:{alphabet}").choices(alphabet, k=length))


def uuid(seed: int = 1) -> str:
    return "-".join(drawn(length, HEX, seed) for length in (8, 4, 4, 4, 12))


def segment(payload: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")


def pem(label: str, lines: int = 6, newline: str = "\n") -> str:
    dashes = "-" * 5
    body = newline.join(drawn(64, WORD + "+/", seed) for seed in range(lines))
    return f"{dashes}BEGIN {label}{dashes}{newline}{body}{newline}{dashes}END {label}{dashes}"


JWT = ".".join(
    (
        segment({"alg": "HS256", "typ": "JWT"}),
        segment({"sub": "1234567890", "name": "Ana", "iat": 1516239022}),
        drawn(43, WORD + "_-"),
    )
)

# name, kind, what stands before the secret, the secret
SECRETS: list[tuple[str, str, str, str]] = [
    ("aws access key id", "aws-access-key-id", "", "AKIA" + drawn(16, BASE32)),
    ("aws temporary key id", "aws-access-key-id", "", "ASIA" + drawn(16, BASE32)),
    ("aws secret", "aws-secret-key", "AWS_SECRET_ACCESS_KEY=", drawn(40, WORD + "+/")),
    ("aws secret, ini", "aws-secret-key", "aws_secret_access_key = ", drawn(40, WORD + "+/", 8)),
    ("github classic", "github-token", "", "ghp_" + drawn(36)),
    ("github oauth", "github-token", "", "gho_" + drawn(36)),
    ("github server", "github-token", "", "ghs_" + drawn(36)),
    ("github fine grained", "github-token", "", "github_pat_" + drawn(22) + "_" + drawn(59)),
    ("gitlab personal", "gitlab-token", "", "glpat-" + drawn(20, WORD + "_")),
    ("gitlab routable", "gitlab-token", "", "glpat-" + drawn(27) + ".01." + drawn(9, LOWER)),
    ("gitlab runner", "gitlab-token", "", "glrt-" + drawn(20)),
    ("bitbucket", "bitbucket-token", "", "ATBB" + drawn(28) + drawn(8, "0123456789ABCDEF")),
    ("atlassian", "atlassian-token", "", "ATATT3" + drawn(186, WORD + "_-") + "A"),
    ("slack bot", "slack-token", "", "-".join(("xoxb", drawn(12, "123456789"), drawn(13, "123456789"), drawn(24)))),
    ("slack app", "slack-token", "", "-".join(("xapp", "1", drawn(11, UPPER), drawn(13, "123456789"), drawn(64, HEX)))),
    (
        "slack webhook",
        "slack-webhook",
        "https://",
        "hooks.slack.com/" + "services/T" + drawn(8, UPPER) + "/B" + drawn(10, UPPER) + "/" + drawn(24),
    ),
    ("stripe live", "stripe-key", "", "sk_" + "live_" + drawn(24)),
    ("stripe restricted", "stripe-key", "", "rk_" + "live_" + drawn(99)),
    ("stripe webhook", "stripe-webhook-secret", "", "whsec_" + drawn(32)),
    ("openai old", "openai-key", "", "sk-" + drawn(20) + "T3Blbk" + "FJ" + drawn(20)),
    ("openai project", "openai-key", "", "sk-proj-" + drawn(74, WORD + "_-") + "T3Blbk" + "FJ" + drawn(74)),
    ("anthropic", "anthropic-key", "", "sk-ant-" + "api03-" + drawn(93, WORD + "_-") + "AA"),
    ("anthropic oauth", "anthropic-key", "", "sk-ant-" + "oat01-" + drawn(86, WORD + "_") + "AA"),
    ("openrouter", "openrouter-key", "", "sk-or-" + "v1-" + drawn(64, HEX)),
    ("hugging face", "huggingface-token", "", "hf_" + drawn(34)),
    ("groq", "groq-key", "", "gsk_" + drawn(52)),
    ("xai", "xai-key", "", "xai-" + drawn(80)),
    ("replicate", "replicate-token", "", "r8_" + drawn(37)),
    ("perplexity", "perplexity-key", "", "pplx-" + drawn(48)),
    ("nvidia", "nvidia-key", "", "nvapi-" + drawn(64, WORD + "_")),
    ("langsmith", "langsmith-key", "", "lsv2_" + "pt_" + drawn(32, HEX) + "_" + drawn(10, HEX)),
    ("pinecone", "pinecone-key", "", "pcsk_" + drawn(6) + "_" + drawn(63)),
    ("google api", "google-api-key", "", "AIza" + drawn(35, WORD + "_")),
    ("google oauth secret", "google-oauth-secret", "", "GOCSPX-" + drawn(28)),
    ("google access token", "google-oauth-token", "", "ya29." + drawn(120, WORD + "_")),
    ("azure storage", "azure-storage-key", "AccountName=shop;AccountKey=", drawn(86, WORD + "+/") + "=="),
    ("azure service bus", "azure-storage-key", "SharedAccessKeyName=root;SharedAccessKey=", drawn(43) + "="),
    ("azure sas", "signed-url", "https://shop.blob.core.windows.net/c?sv=2024-11-04&sig=", drawn(43) + "%3D"),
    ("azure client", "azure-client-secret", "", drawn(3) + "8Q~" + drawn(34, WORD + "_")),
    ("s3 presigned", "signed-url", "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=", drawn(64, HEX)),
    ("npm", "npm-token", "", "npm_" + drawn(36)),
    ("npmrc", "token", "//registry.example.org/:_authToken=", drawn(36, HEX)),
    ("pypi", "pypi-token", "", "pypi-" + "AgEIcHlwaS5vcmc" + drawn(150, WORD + "_")),
    ("rubygems", "rubygems-key", "", "rubygems_" + drawn(48, HEX)),
    ("crates", "crates-token", "", "cio" + drawn(32)),
    ("docker", "docker-token", "", "dckr_" + "pat_" + drawn(27, WORD + "_")),
    ("sendgrid", "sendgrid-key", "", "SG." + drawn(22) + "." + drawn(43)),
    ("twilio key", "twilio-key", "", "SK" + drawn(32, HEX)),
    ("twilio account", "twilio-account", "", "AC" + drawn(32, HEX)),
    ("twilio auth token", "twilio-key", "TWILIO_AUTH_TOKEN=", drawn(32, HEX)),
    ("mailgun old", "mailgun-key", "", "key-" + drawn(32, HEX)),
    ("mailgun new", "mailgun-key", "", drawn(32, HEX) + "-" + drawn(8, HEX) + "-" + drawn(8, HEX, 3)),
    ("mailchimp", "mailchimp-key", "", drawn(32, HEX) + "-us12"),
    ("brevo", "brevo-key", "", "xkeysib-" + drawn(64, HEX) + "-" + drawn(16)),
    ("resend", "resend-key", "", "re_" + drawn(8) + "_" + drawn(24)),
    ("discord bot", "discord-token", "", "MT" + drawn(24) + "." + drawn(6) + "." + drawn(38, WORD + "_")),
    (
        "discord webhook",
        "discord-webhook",
        "https://discord.com/api/webhooks/",
        drawn(18, "123456789") + "/" + drawn(68, WORD + "_"),
    ),
    ("telegram", "telegram-token", "", drawn(10, "123456789") + ":AA" + drawn(33)),
    ("digitalocean", "digitalocean-token", "", "dop_" + "v1_" + drawn(64, HEX)),
    ("heroku", "heroku-key", "", "HRKU-" + drawn(60)),
    ("heroku uuid", "heroku-key", "HEROKU_API_KEY=", uuid(4)),
    ("cloudflare", "cloudflare-token", "CLOUDFLARE_API_TOKEN=", drawn(40, WORD + "_-")),
    ("cloudflare origin", "cloudflare-origin-key", "", "v1.0-" + drawn(24, HEX) + "-" + drawn(146, HEX)),
    ("datadog", "datadog-key", "DD_API_KEY=", drawn(32, HEX)),
    ("new relic user", "newrelic-key", "", "NRAK-" + drawn(27, UPPER)),
    ("new relic licence", "newrelic-key", "", drawn(36, HEX) + "NRAL"),
    ("sentry dsn", "sentry-dsn", "https://", drawn(32, HEX)),
    ("sentry token", "sentry-token", "", "sntrys_" + drawn(120, WORD + "_")),
    ("linear", "linear-key", "", "lin_" + "api_" + drawn(40)),
    ("notion", "notion-token", "", "ntn_" + drawn(46)),
    ("notion old", "notion-token", "", "secret_" + drawn(43)),
    ("shopify", "shopify-token", "", "shpat_" + drawn(32, HEX)),
    ("square", "square-token", "", "sq0atp-" + drawn(22)),
    ("braintree", "braintree-token", "", "access_token" + "$production$" + drawn(16, LOWER) + "$" + drawn(32, HEX)),
    ("paypal", "paypal-secret", "PAYPAL_CLIENT_SECRET=", "E" + drawn(79, WORD + "_")),
    ("terraform", "terraform-token", "", drawn(14) + ".atlasv1." + drawn(67)),
    ("vault", "vault-token", "", "hvs." + drawn(90, WORD + "_")),
    ("doppler", "doppler-token", "", "dp.pt." + drawn(43)),
    ("databricks", "databricks-token", "", "dapi" + drawn(32, HEX)),
    ("supabase", "supabase-token", "", "sbp_" + drawn(40, HEX)),
    ("postman", "postman-key", "", "PMAK-" + drawn(24, HEX) + "-" + drawn(34, HEX)),
    ("figma", "figma-token", "", "figd_" + drawn(40, WORD + "_")),
    ("airtable", "airtable-token", "", "pat" + drawn(14) + "." + drawn(64, HEX)),
    ("hubspot", "hubspot-token", "", "pat-" + "na1-" + uuid(2)),
    ("grafana", "grafana-token", "", "glsa_" + drawn(32) + "_" + drawn(8, HEX)),
    ("dropbox", "dropbox-token", "", "sl." + drawn(140, WORD + "_")),
    ("tailscale", "tailscale-key", "", "tskey-" + "auth-" + drawn(12) + "-" + drawn(32)),
    ("planetscale", "planetscale-token", "", "pscale_" + "tkn_" + drawn(43)),
    ("pulumi", "pulumi-token", "", "pul-" + drawn(40, HEX)),
    ("1password", "onepassword-token", "", "ops_" + segment({"secret": drawn(160)})),
    ("age", "age-secret-key", "", "AGE-SECRET-" + "KEY-1" + drawn(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")),
    ("jwt", "jwt", "", JWT),
    ("bcrypt", "password-hash", "", "$2b$12$" + drawn(53, WORD + "./")),
    ("url password", "url-password", "postgres://shop:", "s3cr3t-" + drawn(6)),
    ("url token", "url-token", "https://", drawn(40, HEX)),
    ("bearer", "authorization", "Authorization: Bearer ", drawn(40, WORD + "_-")),
    ("basic", "authorization", "Authorization: Basic ", base64.b64encode(b"ana:" + drawn(9).encode()).decode()),
    ("bearer in talk", "bearer-token", "it wants bearer ", drawn(32)),
    ("cookie", "cookie", "Cookie: sessionid=", drawn(32, LOWER)),
    ("header", "api-key", "X-Api-Key: ", drawn(32)),
    ("env", "api-key", "export API_KEY=", drawn(24)),
    ("env secret", "secret", "CLIENT_SECRET=", drawn(30, WORD + "_~")),
    ("env password", "password", "DB_PASSWORD=", "hunter2"),
    ("yaml password", "password", "password: ", "Tr0ub4dor&3"),
    ("talk", "password", "the password is ", "Tr0ub4dor&3"),
    ("talk key", "api-key", "my API key is ", drawn(32)),
    ("chinese talk", "password", "密码：", "hunter2x"),
    ("spanish", "password", "contraseña: ", "g4t0-negro"),
    ("flag", "password", "mysql --password ", "hunter2!"),
    ("query", "token", "https://api.example.org/v1?access_token=", drawn(32)),
    ("connection string", "password", "Server=db;User Id=sa;Password=", "Sup3rS3cret!"),
    ("nameless", "high-entropy", "", drawn(44)),
    ("card", "card-number", "", "4111 1111 " + "1111 1111"),
    ("card, amex", "card-number", "", "3782 " + "822463 10005"),
]  # fmt: skip

AFTER = {
    "sentry dsn": "@o1.ingest.sentry.io/42",
    "url token": "@git.example.org/x",
    "url password": "@db.example.org/x",
}


@pytest.mark.parametrize(("name", "kind", "before", "secret"), SECRETS, ids=[row[0] for row in SECRETS])
@pytest.mark.parametrize(
    "frame",
    ["{}", "Could you try {} for me? It worked yesterday.", "line one\n{}\nline three", "用这个 {} 好吗"],
    ids=["alone", "prose", "lines", "chinese"],
)
def test_a_credential_is_replaced_wherever_it_stands(
    name: str, kind: str, before: str, secret: str, frame: str
) -> None:
    text = frame.format(before + secret + AFTER.get(name, ""))

    redaction = redact(text)

    assert redaction.text == frame.format(before + f"[REDACTED:{kind}]" + AFTER.get(name, ""))
    assert redaction.found == ((kind, 1),)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("between", [" ", ", ", "\n", "-"])
def test_card_numbers_side_by_side_are_all_replaced(count: int, between: str) -> None:
    card = "4038 0740 " + "8905 6462"

    redaction = redact(between.join([card] * count))

    assert redaction.text == between.join(["[REDACTED:card-number]"] * count)


def test_card_numbers_of_two_lengths_side_by_side_are_all_replaced() -> None:
    amex, other = "3782 " + "822463 10005", "4038 0740 " + "8905 6462"

    assert redact(f"{amex} {other} {amex}").text == " ".join(["[REDACTED:card-number]"] * 3)


def test_a_longer_number_in_groups_of_four_is_no_card() -> None:
    text = "4038 0740 8905 6462 1234"
    assert redact(text).text == text


CODE_FRAMES = ['client = Client("{}")', "call({!r}, timeout=3)  # rotate", "curl -H '{}' https://api.example.org/v1"]


@pytest.mark.parametrize(("name", "kind", "before", "secret"), SECRETS, ids=[row[0] for row in SECRETS])
@pytest.mark.parametrize("frame", CODE_FRAMES, ids=["string", "repr", "header"])
def test_a_credential_in_code_is_gone(name: str, kind: str, before: str, secret: str, frame: str) -> None:
    text = frame.format(before + secret + AFTER.get(name, ""))

    redaction = redact(text)

    assert secret not in redaction.text
    assert f"[REDACTED:{kind}]" in redaction.text


@pytest.mark.parametrize(("name", "kind", "before", "secret"), SECRETS, ids=[row[0] for row in SECRETS])
@pytest.mark.parametrize("times", [1, 2], ids=["json", "json in json"])
def test_a_credential_in_json_is_gone_and_the_json_still_parses(
    name: str, kind: str, before: str, secret: str, times: int
) -> None:
    value: object = {"stdout": f"one\n{before}{secret}{AFTER.get(name, '')}\nthree", "code": 0}
    text = json.dumps(value, ensure_ascii=False)
    if times == 2:
        text = json.dumps({"output": text}, ensure_ascii=False)

    redaction = redact(text)

    assert secret not in redaction.text
    assert f"[REDACTED:{kind}]" in redaction.text
    assert json.loads(redaction.text).keys() == json.loads(text).keys()


ASSIGNED = drawn(32, WORD, 11)


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "{}"',
        "apiKey: '{}',",
        '"api_key": "{}"',
        '{{\\"api_key\\": \\"{}\\"}}',
        "API_KEY={}",
        "export OPENWEATHER_API_KEY='{}'",
        "os.environ['SERVICE_API_KEY'] = '{}'",
        'api_key: str = "{}"',
        '{{"name": "STAGE_API_KEY", "value": "{}"}}',
        '- name: STAGE_API_KEY\n  value: "{}"',
        '<add key="ApiKey" value="{}"/>',
        "<apiKey>{}</apiKey>",
        "--api-key {}",
        "--api-key={}",
        "https://maps.example.org/v2?q=a&api_key={}&z=3",
        "**API key:** {}",
        "| api_key | {} |",
        "api_key => '{}'",
        "api_key := `{}`",
        "BACKEND_API_KEY={}",
    ],
)
def test_an_assignment_is_recognised_in_every_notation(line: str) -> None:
    redaction = redact(line.format(ASSIGNED))

    assert redaction.text == line.format("[REDACTED:api-key]")


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("sshpass -p {} ssh ana@host", "hunter2"),
        ("curl -s -u ana:{} https://api.example.org", "hunter2"),
        ("machine api.example.org login ana password {}", "hunter2"),
        ("CREATE USER shop WITH PASSWORD '{}'", "hunter2"),
        ('PGPASSWORD="{}" psql', "hunter2"),
        ("redis://:{}@cache:6379/0", "hunter2"),
        ("mongodb+srv://ana:{}@cluster0.abcde.mongodb.net", "p@ss:word"),
        ("<password>{}</password>", "hunter2"),
        ("I changed the password to {} today.", "hunter2"),
        ("パスワード：{}", "sakura99"),
        ("password = '{}'", "correct1horse"),
        ("db_pass: {}", "k9!dogs"),
    ],
)
def test_a_password_need_not_look_random_where_its_place_says_what_it_is(line: str, secret: str) -> None:
    redaction = redact(line.format(secret))

    assert "REDACTED" in redaction.text
    assert secret not in redaction.text


@pytest.mark.parametrize(
    "label",
    ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY",
     "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"],
)  # fmt: skip
def test_a_private_key_goes_as_a_whole(label: str) -> None:
    text = f"before\n{pem(label)}\nafter"

    assert redact(text).text == "before\n[REDACTED:private-key]\nafter"


def test_a_service_account_file_keeps_all_but_its_key() -> None:
    text = json.dumps({"type": "service_account", "private_key": pem("PRIVATE KEY") + "\n", "client_id": "1"}, indent=1)

    assert json.loads(redact(text).text) == {
        "type": "service_account",
        "private_key": "[REDACTED:private-key]\n",
        "client_id": "1",
    }


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n"])
def test_a_private_key_that_was_cut_off_goes_as_far_as_it_reaches(newline: str) -> None:
    key = newline.join(pem("RSA PRIVATE KEY", newline="\n").split("\n")[:4])

    redaction = redact(f"{key}{newline}and then it stopped.")

    assert redaction.text.startswith("[REDACTED:private-key]")
    assert redaction.text.endswith("and then it stopped.")
    assert not any(drawn(64, WORD + "+/", seed) in redaction.text for seed in range(6))


HARMLESS = [
    # talk about secrets
    "Rotate the API key every 90 days, and never commit a password.",
    "The token is stored in the keychain; the secret is that nobody reads the docs.",
    "I forgot my password again. The password is required to be 12 characters.",
    "Which access key should I use: the old one or the new one?",
    "Bearer authentication is simpler than basic authentication.",
    "She is the key to this; the secret: patience.",
    "Set PASSWORD in your .env, then export API_KEY from the dashboard.",
    "Our token budget is 200000 tokens, max_tokens=4096, token_count: 1283",
    "You have to pass x1 to the function, and pass `retries=3`.",
    "The passphrase: something you would never write down.",
    "密码很重要，不要告诉别人。令牌已经过期。",
    "Mot de passe oublié ? Das Passwort ist zu kurz.",
    # placeholders
    "sk-...", "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "OPENAI_API_KEY=sk-your-key-here-please-replace",
    "API_KEY=YOUR_API_KEY_GOES_HERE_1234", "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${GITHUB_TOKEN}", "password=********", 'password: "changeme123"', "token: {{ vault_token_1 }}",
    "ghp_" + "x" * 36, "ghp_" + "your" * 9, "AKIA" + "IOSFODNN7" + "EXAMPLE", "postgres://user:password@localhost/db",
    "https://user:${PASS}@host.example.org", "redis://:<password>@cache", "DB_PASSWORD=%s", "api_key=os.environ['KEY1']",
    "-----BEGIN PRIVATE KEY-----", 'if "-----BEGIN RSA PRIVATE KEY-----" in s and "-----END RSA PRIVATE KEY-----" in s:',
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9...",
    # code
    "password = get_password(user2)", "password: str | None = None", "def login(user: str, password: str) -> Token2:",
    "self.token = tokens[i + 1]", "token=self.client.token2", 'api_key = config["api_key_2"]', "secret = hashlib.sha256(b)",
    'GRANT = "password"', 'PASSWORD_FIELD = "password-input"', "key=lambda item: item[1]", "primary_key=True, foreign_key='t1'",
    "if password == 'wrong1':", "tokenizer = AutoTokenizer.from_pretrained('bge-small-en-v1.5')", 'API_KEY_HEADER = "X-API-Key-V2"',
    "secretName: shop-tls-2024", "next_page_token: " + drawn(40), 'type="password" id="password2" name="pw"', "cache_key = f'user:{uid}:v2'",
    "import { TokenProvider2 } from './auth/token-provider-v2';", "monkeypatch.setattr(client, 'token', 'tok1')",
    # identifiers, hashes, ids
    drawn(40, HEX), "commit " + drawn(40, HEX) + "\n", drawn(64, HEX), uuid(3), "01JD" + drawn(22, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
    '"integrity": "sha512-' + drawn(86, WORD + "+/") + '=="', "sha256:" + drawn(64, HEX), "sha256=" + drawn(43, WORD + "_-"),
    "golang.org/x/net v0.30.0 h1:" + drawn(43, WORD + "+/") + "=", "--hash=sha256:" + drawn(64, HEX),
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn(43, WORD + "+/") + " ana@laptop", "SHA256:" + drawn(43, WORD + "+/"),
    "session_id: " + uuid(5), "toolu_01" + drawn(22), "msg_01" + drawn(22), "chatcmpl-" + drawn(29), "req_011C" + drawn(40),
    "thisIsAVeryLongCamelCaseIdentifierThatSomebodyReallyWrote2024Times", "AbstractSingletonProxyFactoryBeanConfiguration2Test",
    "/usr/lib/python3.11/site-packages/scrubjay/store/migrations/0001_initial_schema_v2.sql",
    "C:\\Users\\Ana\\AppData\\Local\\Programs\\Python311\\Lib\\site-packages\\PIL\\Image.py",
    "https://docs.google.com/document/d/1" + drawn(43, WORD + "_-") + "/edit",
    "https://github.com/o/r/blob/" + drawn(40, HEX) + "/src/main.rs#L10-L20", "https://example.org/a?page=2&sort=name",
    "git@github.com:owner/repo.git", "ssh://git@host.example.org:2222/x.git", "http://localhost:8080/@scope/pkg@1.2.3",
    "#ff8800 #a1b2c3d4 rgba(1,2,3,0.4)", "v1.2.3-beta.4+build.20241121", "2024-11-21T10:22:33.123456Z", "10.0.0.1:5432",
    "data:image/png;base64,iVBORw0KGgo" + drawn(80, WORD + "+/"), "\n".join(drawn(76, WORD + "+/", seed) for seed in range(4)),
    pem("CERTIFICATE"), pem("PUBLIC KEY"), "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-a1b2c3",
    "4111 1111 1111 1112", "52A5 962C 542D 5751 5994 6333 7841 727C", "1234 5678", "+49 151 2345 6789",
    "[REDACTED:password]", "password=[REDACTED:password]", "-" * 200, "=" * 200, "a" * 200, "é" * 200, "",
]  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
@pytest.mark.parametrize("frame", ["{}", "See {} for this."], ids=["alone", "prose"])
def test_what_is_no_credential_is_untouched(text: str, frame: str) -> None:
    whole = frame.replace("{}", text)

    assert redact(whole) == Redaction(text=whole)


def test_several_credentials_are_counted_by_kind() -> None:
    first, second = "ghp_" + drawn(36, WORD, 1), "ghp_" + drawn(36, WORD, 2)

    redaction = redact(f"{first} {second}\nDB_PASSWORD=hunter2")

    assert redaction.text == "[REDACTED:github-token] [REDACTED:github-token]\nDB_PASSWORD=[REDACTED:password]"
    assert redaction.found == (("github-token", 2), ("password", 1))


def test_credentials_glued_together_all_go() -> None:
    parts = ["AKIA" + drawn(16, BASE32), "ghp_" + drawn(36), "glpat-" + drawn(20), JWT]

    text = redact("_".join(parts)).text

    assert not any(part in text for part in parts)
    assert redact(text).text == text


def test_every_kind_of_the_rules_is_shown_by_a_name_that_fits_the_marker() -> None:
    assert all(kind and set(kind) <= set(string.ascii_lowercase + string.digits + "-") for kind in KINDS)
    assert len({rule.kind for rule in RULES}) >= 45
    assert len({kind for _, kind, _, _ in SECRETS}) >= 45


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 password=\udfff", "\x00\x00ghp_\x00", "İ" * 3 + " password: İstanbul34", "\ud83d" * 50, "password=\x00hunter2\x00",
    ],
)  # fmt: skip
def test_broken_unicode_is_no_obstacle(text: str) -> None:
    once = redact(text).text

    assert redact(once).text == once


def test_a_letter_that_changes_length_in_lower_case_does_not_shift_the_cut() -> None:
    assert redact("İİİİ DB_PASSWORD=hunter2 İ").text == "İİİİ DB_PASSWORD=[REDACTED:password] İ"


ADVERSARIAL = [
    "sk-", "ghp_", "eyJ", "eyJhbGciOiJI.", "://", "://a:", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----\n", "password=",
    "password: password: ", "Authorization: Bearer ", "bearer ", "cookie: a=b;", "Cookie: ", "<private>", "</private>",
    "<pri<private>x</private>vate>", "<private <private>x</private>>", "<memory source=scrubjay ", "<system-reminder>",
    "<memory source=scrubjay >\n<system-reminder>", "&amp;lt;memory source=", '<memory    source = \\\\\\"', "curl -u a ", "token to \\\\\\", "Q~", ":AA", "$2a$", "aB3", "aB3/", "4111 ", "A-",
    "xoxb-", "[REDACTED:jwt]", "[REDACTED:", "machine a login b password ", "-us1", "\\n", '"', "a1_key=", 'key="', '\\\\\\"',
    'private_key": "', "aA1 \n", "Private-Lines: 9\n", "sig=", "://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@", "pass|", "--token ",
]  # fmt: skip


@pytest.mark.parametrize("unit", ADVERSARIAL, ids=range(len(ADVERSARIAL)))
@pytest.mark.parametrize("size", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_text_made_to_be_slow_ends(unit: str, size: int) -> None:
    text = unit * (size // len(unit))

    assert isinstance(clean(text), Cleaned)


TOKENS = st.sampled_from([secret for _, _, _, secret in SECRETS])
ALONE = st.sampled_from([row[3] for row in SECRETS if not row[2] and row[0] != "nameless"])
BEFORE = st.sampled_from(sorted({before for _, _, before, _ in SECRETS}))
SOUP = st.lists(
    st.one_of(
        TOKENS,
        BEFORE,
        st.text(max_size=6),
        st.sampled_from(
            [
                "<private>", "</private>", "<private", ">", INJECTED_OPEN, f'{INJECTED_OPEN} id="m">\n', INJECTED_CLOSE,
                "<system-reminder>", "</system-reminder>", "\n", " ", '"', "'", "\\n", "\\", "[REDACTED:jwt]", "[REDACTED:",
                "]", "password", "=", ":", "@", "://", "-", "_", ".", "-----BEGIN RSA PRIVATE KEY-----", "hunter2", "key", "&",
            ]
        ),
    ),
    max_size=12,
).map("".join)  # fmt: skip
ANY_TEXT = st.one_of(st.text(st.characters(), max_size=200), SOUP)


@pytest.mark.slow
@given(ANY_TEXT)
@settings(max_examples=100)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text).text

    assert redact(once) == Redaction(text=once)


@pytest.mark.slow
@given(ANY_TEXT)
@settings(max_examples=100)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = clean(text).text

    assert clean(once) == Cleaned(text=once)


@given(st.text(st.characters(), max_size=300))
def test_text_without_long_runs_or_key_words_is_returned_as_it_was(text: str) -> None:
    words = " ".join(word[:8] for word in text.replace("<", " ").split())
    harmless = "".join(char for char in words if char not in "=:：是为|@-<>")

    assert redact(harmless).text == harmless


@given(st.lists(st.tuples(st.text("abc \n,.äß漢字", max_size=20), ALONE), max_size=4))
def test_everything_around_the_credentials_stays(parts: list[tuple[str, str]]) -> None:
    text = "".join(f"{words}\n{token}\n" for words, token in parts)

    kept = redact(text).text

    assert all(words in kept for words, _ in parts)
    assert kept.count("\n") == text.count("\n")
    assert not any(token in kept for _, token in parts)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("My PIN is <private>1234</private>, keep it.", "My PIN is , keep it."),
        ("a <private>b</private> c", "a  c"),
        ("a<private>b</private>c", "a c"),
        ("<PRIVATE>x</Private>y", "y"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("a <private>b", "a "),
        ("a <private>b <private>c</private> d", "a "),
        ("<private></private>", ""),
        ("a\n<private>\nline\nline\n</private>\nb", "a\n\nb"),
        ('{"t": "a \\u003cprivate\\u003eb\\u003c/private\\u003e c"}', '{"t": "a  c"}'),
        ('{"t": "a <private>b<\\/private> c"}', '{"t": "a  c"}'),
        ("<pri<private>x</private>vate>y", "<pri vate>y"),
        ("ssh -i <private key> and <private_key_path>", "ssh -i <private key> and <private_key_path>"),
        ("a private matter </private>", "a private matter </private>"),
    ],
)
def test_private_passages_are_taken_out(text: str, kept: str) -> None:
    assert blocks.cut_out(text, blocks.private_spans)[0] == kept


BLOCK = injected("- the cart store uses SQLite WAL [m-41]", trust="recalled-data")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (BLOCK, ""),
        (f"before\n{BLOCK}\nafter", "before\n\nafter"),
        (f"<system-reminder>\nhook context: {BLOCK}\n</system-reminder>\nSwitch the store.", "\nSwitch the store."),
        ("<system-reminder>the date is today</system-reminder> hi", "<system-reminder>the date is today</system-reminder> hi"),
        (f"a {BLOCK[: -len(INJECTED_CLOSE)]}", "a "),
        (f"<system-reminder>{BLOCK[:-30]}</system-reminder> hi", " hi"),
        (f"we wrap it in `{INJECTED_OPEN} …>` blocks", f"we wrap it in `{INJECTED_OPEN} …>` blocks"),
        (f"in `{INJECTED_OPEN}>` blocks: {BLOCK} so", f"in `{INJECTED_OPEN}>` blocks:  so"),
        (f"x {BLOCK.upper()} y", "x  y"),
        (json.dumps({"a": BLOCK}), '{"a": " "}'),
        ("<memory>not ours</memory>", "<memory>not ours</memory>"),
        ('<memory source="notes">not ours</memory>', '<memory source="notes">not ours</memory>'),
        (f"<hook_context>{html.escape(BLOCK)}</hook_context>\n\nSwitch the store.", "\n\nSwitch the store."),
        (f"<hook_context>{html.escape(html.escape(BLOCK))}</hook_context> hi", " hi"),
        (html.escape(BLOCK, quote=False), ""),
    ],
)  # fmt: skip
def test_our_own_blocks_are_not_learned_again(text: str, kept: str) -> None:
    assert blocks.cut_out(text, blocks.injected_spans)[0] == kept


@given(st.one_of(SOUP, st.text(st.characters(), max_size=100)), st.text(st.characters(), max_size=20))
def test_no_body_and_no_attribute_breaks_out_of_the_block(body: str, attribute: str) -> None:
    block = injected(body, trust=attribute)

    assert blocks.cut_out(f"a\n{block}\nb", blocks.injected_spans)[0] == "a\n\nb"


@pytest.mark.parametrize(
    "tag",
    [
        "</memory>", "<" + " " * 9 + "/memory>", "<\n\n\n/memory>", "</ｍｅｍｏｒｙ>", "</m\u0435mory>", "</mem\u200bory>",
        "＜/memory＞", "﹤/memory﹥", "⟨/memory⟩", "ᐸ/memory>", "<∕memory>", "<\\/memory>", "</memory", "</𝐦𝐞𝐦𝐨𝐫𝐲>",
        "&lt;/memory&gt;", "&amp;lt;/memory&amp;gt;", "&#60;/memory>", "&#x3C;/memory>", "&LT;/memory>", "\\u003c/memory>",
        "\\x3c/memory>", "%3C/memory%3E", "<|im_start|>system", "<|eot_id|>", "<｜User｜>", "</tool_response>", "<<SYS>>",
        "<function_results>", "<s>", "<\u202e/memory>", "<!--", "<?php", "<![CDATA[", "&lt/memory>", "&#60/memory>",
        "&#x0000000003c/memory>", "&amp;amp;amp;lt;/memory>", "＆lt;/memory>", "\\u{3c}/memory>", "\\U0000003c/memory>",
        "\\074/memory>", "%25253C/memory>", "≮/memory>", "<3/memory>", "<=/memory>", "< =/memory>", "<1|im_start|>",
        "<<2SYS>>", "［INST］", "[SYSTEM_PROMPT]", "[/TOOL_RESULTS]", "[/INST]", "[ INST ]", "x<system>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", "a {} b", "word{}word", "«{}»"])
def test_no_sign_that_a_model_may_read_as_a_tag_is_left_in_what_is_handed_over(tag: str, frame: str) -> None:
    handed = defused(frame.format(tag))

    assert not re.search(
        r"[<＜﹤⟨ᐸ≮]|[&＆]\S{0,12}lt\b|&#|3c|\\074|[\[［]\s*/?\s*(INST|[A-Z]+_)", handed, re.IGNORECASE
    ), handed
    assert defused(handed) == handed


@pytest.mark.parametrize(
    "text",
    [
        "a <= b",
        "n < 5",
        "i<10",
        "x << 2",
        "p -> q",
        "a > b",
        "cost: 3 € «net»",
        "f(x) [INSTALL]",
        "(n <=5)",
        "x < -1.5,",
        "`<=`",
        "<5% of",
        "?a=1&lt=5&ltd=1",
        "x < 10. Then",
    ],
)
def test_what_compares_is_let_be(text: str) -> None:
    assert defused(text) == text


def test_an_attribute_says_nothing_that_a_model_may_read_as_a_tag() -> None:
    block = injected("x", project="a\u2028＜/memory＞ &lt;/memory&gt; &quot;>")

    assert not re.search("[＜\u2028]|&lt|&quot|&gt", block)


@given(st.text(st.sampled_from("<＜ \t\n/|memoryMЕ>!?[]INST&lt;#x3c\\u0%=1"), max_size=60))
def test_defusing_twice_is_defusing_once(text: str) -> None:
    assert defused(defused(text)) == defused(text)


def test_clean_does_all_three_and_counts() -> None:
    text = f"{BLOCK}\nDB_PASSWORD=hunter2 <private>and {INJECTED_OPEN}</private> done"

    cleaned = clean(text)

    assert cleaned == Cleaned(
        text="\nDB_PASSWORD=[REDACTED:password]  done",
        redactions=(("password", 1),),
        private_removed=1,
        injected_removed=1,
    )


def test_a_memory_that_speaks_of_the_private_tag_does_not_swallow_what_the_user_said() -> None:
    text = f"{injected('use <private> around secrets')}\nAnd I prefer tabs."

    assert clean(text).text == "\nAnd I prefer tabs."


def test_a_secret_uncovered_by_a_private_passage_is_still_found() -> None:
    text = f"DB_PASSWORD=<private>x</private>hunter2 ghp_{drawn(36)}"

    assert drawn(36) not in clean(text).text


def test_the_results_are_values() -> None:
    with pytest.raises(FrozenInstanceError):
        redact("x").text = "y"  # type: ignore[misc]


def test_metadata_is_cleaned_wherever_a_string_stands() -> None:
    token = "ghp_" + drawn(36)

    cleaned = clean_json(
        {"cmd": ["curl", f"-H {token}"], "n": 1, "ok": True, "none": None, "deep": {"note": "a <private>b</private> c"}}
    )

    assert cleaned.value == {
        "cmd": ["curl", "-H [REDACTED:github-token]"], "n": 1, "ok": True, "none": None, "deep": {"note": "a  c"},
    }  # fmt: skip
    assert cleaned.redactions == (("github-token", 1),)
    assert cleaned.private_removed == 1


@pytest.mark.parametrize(
    ("member", "kept"),
    [
        ({"password": "plainword"}, {"password": "[REDACTED:password]"}),
        ({"password": 123456}, {"password": "[REDACTED:password]"}),
        ({"userPassword": "plainword"}, {"userPassword": "[REDACTED:password]"}),
        ({"api_key": "plain"}, {"api_key": "[REDACTED:api-key]"}),
        ({"apiKey": "plain"}, {"apiKey": "[REDACTED:api-key]"}),
        ({"x-api-key": "plain"}, {"x-api-key": "[REDACTED:api-key]"}),
        ({"client_secret": "plain"}, {"client_secret": "[REDACTED:secret]"}),
        ({"access_token": "plain"}, {"access_token": "[REDACTED:token]"}),
        ({"Authorization": "Bearer abc"}, {"Authorization": "[REDACTED:authorization]"}),
        ({"passwords": ["a", "b"]}, {"passwords": ["[REDACTED:password]", "[REDACTED:password]"]}),
        ({"credentials": {"user": "ana", "pass": "b"}}, {"credentials": {"user": "ana", "pass": "[REDACTED:password]"}}),
        ({"password": ""}, {"password": ""}),
        ({"password": None, "token": 5, "secret": True}, {"password": None, "token": 5, "secret": True}),
        ({"password": "[REDACTED:password]"}, {"password": "[REDACTED:password]"}),
        ({"public_key": "abc", "primary_key": "id", "max_tokens": "1000"}, {"public_key": "abc", "primary_key": "id", "max_tokens": "1000"}),
        ({"tokenizer": "bge", "secret_name": "tls"}, {"tokenizer": "bge", "secret_name": "tls"}),
    ],
)  # fmt: skip
def test_a_member_whose_name_says_secret_loses_its_value(member: object, kept: object) -> None:
    assert clean_json(member).value == kept


def test_members_whose_names_become_equal_are_all_kept() -> None:
    first, second = "ghp_" + drawn(36, WORD, 1), "ghp_" + drawn(36, WORD, 2)

    assert clean_json({first: 1, second: 2}).value == {"[REDACTED:github-token]": 1, "[REDACTED:github-token]#2": 2}


def test_metadata_nested_too_deeply_is_refused_with_a_hint() -> None:
    value: object = "x"
    for _ in range(10_000):
        value = [value]

    with pytest.raises(InvalidError, match="nested deeper than 32") as refusal:
        clean_json(value)

    assert refusal.value.hint


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), SOUP),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(SOUP, st.sampled_from(["password", "api_key", "note"])), inner, max_size=3),
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(JSON)
@settings(max_examples=100)
def test_cleaning_metadata_twice_is_cleaning_it_once(value: object) -> None:
    once = clean_json(value).value

    assert clean_json(once).value == once


# Passwords that are words, and every other place where people leave a secret.

PLANTED = planted_secrets.planted()


def test_the_planted_secrets_are_many_and_of_many_forms() -> None:
    assert len(PLANTED) == 200
    assert len({one.kind for one in PLANTED}) >= 25
    assert len(planted_secrets.LOOK_ALIKES) >= 60
    assert planted_secrets.planted() == PLANTED


@pytest.mark.parametrize("seed", [10, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20))])
def test_every_planted_secret_is_hidden_and_stays_so(seed: int) -> None:
    texts = planted_secrets.planted(seed) + planted_secrets.every_surrounding(seed)
    once = [clean(one.text).text for one in texts]

    assert [one for one, kept in zip(texts, once, strict=True) if one.secret in kept] == []
    assert [clean(kept) for kept in once] == [Cleaned(text=kept) for kept in once]


@pytest.mark.parametrize("seed", [10])
def test_every_planted_secret_is_hidden_in_the_midst_of_a_conversation(seed: int) -> None:
    for one in planted_secrets.every_surrounding(seed):
        text = f"We looked at it on Monday.\n\n{one.text}\n\nThen we went on with the cart."

        assert one.secret not in clean(text).text, one


@pytest.mark.parametrize("text", planted_secrets.LOOK_ALIKES, ids=range(len(planted_secrets.LOOK_ALIKES)))
def test_what_only_speaks_of_passwords_stays(text: str) -> None:
    assert clean(text) == Cleaned(text=text)
    assert clean(f"Note:\n{text}\nand so on") == Cleaned(text=f"Note:\n{text}\nand so on")


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("DB_PASSWORD={}", "correcthorsebattery"),
        ('{{"password": "{}"}}', "blueotterhouse"),
        ("export DB_PASS='{}'", "blue-otter-house"),
        ("PGPASSWORD={}", "sommer"),
        ("mysql -u root -p{}", drawn(12)),
        ('DB_PASSWORD="{}"', "correct horse battery staple"),
        ("https://{}@o0.ingest.sentry.io/1", drawn(32, HEX)),
        ("https://{}@o0.ingest.sentry.io/1", "a1b2c3d4e5f6"),
        ("JWT_SECRET={}", "blueotterhouse"),
        ("the db password is {}", "correct-horse-battery"),
    ],
)
def test_a_password_of_words_goes_where_it_is_assigned(line: str, secret: str) -> None:
    assert secret not in clean(line.format(secret)).text


# What is skipped, and what is looked at in windows.


def whole(text: str) -> Redaction:
    """Redact without the look beforehand, and with every window longer than the text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "WINDOW", len(text) + 1_000_000)
        patch.setattr(pipeline, "_may_hold_credential", lambda _: True)
        return redact(text)


def in_windows(text: str, window: int) -> Redaction:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "WINDOW", window)
        patch.setattr(spans, "WINDOW", window)
        return redact(text)


PLANTED_TEXTS = st.sampled_from([one.text for one in PLANTED] + list(planted_secrets.LOOK_ALIKES))
PIECES = st.lists(
    st.one_of(ANY_TEXT, PLANTED_TEXTS, st.sampled_from(ADVERSARIAL), st.integers(1, 90).map("x7Q".__mul__)), max_size=8
).map("".join)


@given(PIECES)
@settings(max_examples=50)
def test_the_look_beforehand_never_skips_what_the_rules_would_change(text: str) -> None:
    assert redact(text) == whole(text)


@given(PIECES)
def test_without_an_opening_angle_bracket_or_its_escape_there_is_no_passage_to_take_out(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "may_hold_tag", lambda _: True)
        patch.setattr(pipeline, "may_hold_tag", lambda _: True)
        looked = clean(text)

    assert clean(text) == looked


@given(PIECES, st.sampled_from([128, 131, 150, 257]))
@settings(max_examples=50)
def test_a_text_read_in_windows_loses_the_same_as_one_read_whole(text: str, window: int) -> None:
    assert in_windows(text, window) == whole(text)


@pytest.mark.parametrize("offset", range(-60, 61, 4))
def test_a_secret_across_the_edge_of_a_stretch_is_hidden(offset: int) -> None:
    for one in PLANTED[:44]:
        text = "so it is. " * ((200 + offset) // 10) + " " * (offset % 10) + "\n" + one.text

        assert in_windows(text, 200) == whole(text), one


@given(PIECES)
@settings(max_examples=100)
def test_cleaning_planted_texts_twice_is_cleaning_them_once(text: str) -> None:
    once = clean(text).text

    assert clean(once) == Cleaned(text=once)


@given(st.lists(PLANTED_TEXTS, max_size=3), st.sampled_from(["note", "password", "api_key", "env"]))
@settings(max_examples=100)
def test_cleaning_planted_metadata_twice_is_cleaning_it_once(texts: list[str], name: str) -> None:
    once = clean_json({name: texts, "more": {text: text for text in texts}}).value

    assert clean_json(once).value == once


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a", "xK3m9Qz7", "password=", "a_key=b_key=", "the quick brown fox, ", '{"token_count": 12, "msg": "stored"}\n', "é "]
)  # fmt: skip
def test_no_single_step_over_a_large_text_keeps_other_threads_waiting(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    worker = threading.Thread(target=clean, args=(text,))
    worker.start()
    clock = time.pthread_getcpuclockid(worker.ident or 0)
    held, last = [], 0.0
    while worker.is_alive():
        time.sleep(0.001)
        with contextlib.suppress(OSError):  # it may end in between
            now = time.clock_gettime(clock)
            held.append(now - last)
            last = now
    worker.join()

    # What the worker computed between two turns of this thread: unlike the time by the clock, that of a busy machine too.
    assert max(held) < 0.1


@pytest.mark.parametrize("after", ["", ".", ":D1:1", "|", "=."])
def test_a_basic_authorization_is_hidden_whatever_stands_behind_it(after: str) -> None:
    value = base64.b64encode(b"ana:" + b"planet-mirror-sunset").decode()

    by_shape = replace(DEFAULT.redact, token_max_chars=0)

    assert value not in clean(f"Authorization: Basic {value}{after}", by_shape).text
