"""Made-up secrets in the places where people and programs leave them, and texts that only look as if they held one.

`planted(seed)` draws secrets (none is real, none stands in this file) and puts each into a surrounding: an environment
file, a shell session, a log, a diff, a sentence. The same seed gives the same list. `LOOK_ALIKES` must stay as they are.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

_HEX = "0123456789abcdef"
_WORD = string.ascii_letters + string.digits
_BASE32 = string.ascii_uppercase + "234567"
_WORDS = [
    "amber",
    "anchor",
    "badger",
    "barley",
    "birch",
    "bottle",
    "cactus",
    "candle",
    "canyon",
    "cherry",
    "copper",
    "cotton",
    "dragon",
    "falcon",
    "feather",
    "fiddle",
    "forest",
    "garden",
    "ginger",
    "hammer",
    "harbor",
    "hollow",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "lantern",
    "marble",
    "meadow",
    "mirror",
    "molten",
    "mustard",
    "orchard",
    "otter",
    "paddle",
    "pebble",
    "pepper",
    "pigeon",
    "pillow",
    "planet",
    "pocket",
    "puddle",
    "purple",
    "rabbit",
    "ribbon",
    "river",
    "rocket",
    "saddle",
    "salmon",
    "shadow",
    "silver",
    "sparrow",
    "spider",
    "summer",
    "sunset",
    "thistle",
    "thunder",
    "timber",
    "tulip",
    "tunnel",
    "turtle",
    "velvet",
    "violet",
    "walnut",
    "willow",
    "winter",
    "yellow",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One text and the secret in it: no part of `secret` of eight characters or more may be stored.

    `kind` names the form (not `secret_rules.KINDS`): "env", "yaml", "prose" and so on.
    """

    kind: str
    text: str
    secret: str


# Secrets.


def _joined(draw: random.Random) -> str:
    return "".join(draw.sample(_WORDS, draw.choice((2, 3))))


def _hyphened(draw: random.Random) -> str:
    return "-".join(draw.sample(_WORDS, 3))


def _one_word(draw: random.Random) -> str:
    return draw.choice([word for word in _WORDS if len(word) >= 6])


def _mixed(draw: random.Random) -> str:
    return draw.choice(_WORDS).capitalize() + draw.choice("-!+~") + str(draw.randrange(10, 9999))


def _random(draw: random.Random) -> str:
    # A letter first and a digit last, so that every draw has both.
    return (
        draw.choice(string.ascii_letters)
        + "".join(draw.choices(_WORD, k=draw.randrange(8, 16)))
        + draw.choice("23456789")
    )


def _password(draw: random.Random) -> str:
    """Return a password as people choose them: words as often as not."""
    return draw.choice((_joined, _hyphened, _one_word, _mixed, _random))(draw)


def _phrase(draw: random.Random) -> str:
    """Return a password that a sentence cannot hold by accident."""
    return draw.choice((_hyphened, _mixed, _random))(draw)


def _from(alphabet: str, length: int) -> Callable[[random.Random], str]:
    return lambda draw: "".join(draw.choices(alphabet, k=length))


def _key(length: int) -> Callable[[random.Random], str]:
    """Return what draws letters and digits. The first and last are digits: of such keys one in a thousand has none."""
    return lambda draw: f"{draw.randrange(10)}{_from(_WORD, length - 2)(draw)}{draw.randrange(10)}"


def _github(draw: random.Random) -> str:
    return "gh" + "p_" + _from(_WORD, 36)(draw)


def _aws_id(draw: random.Random) -> str:
    return "AK" + "IA" + _from(_BASE32, 16)(draw)


def _slack(draw: random.Random) -> str:
    digits = _from("123456789", 12)
    return "-".join(("xo" + "xb", digits(draw), digits(draw), _from(_WORD, 24)(draw)))


def _openai(draw: random.Random) -> str:
    return "sk-" + "proj-" + _from(_WORD, 74)(draw)


def _jwt(draw: random.Random) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": str(draw.randrange(10**9)), "iat": draw.randrange(10**9)})
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*texts, _from(_WORD, 43)(draw)))


def _key_body(draw: random.Random) -> str:
    return _from(_WORD, 64)(draw)


def _basic(draw: random.Random) -> str:
    return base64.b64encode(f"ana:{_password(draw)}".encode()).decode()


def _wrapped(text: str) -> str:
    """Return the text as a JSON string inside a JSON string."""
    return json.dumps({"payload": json.dumps({"user": "ana", "password": text})})


_DASHES = "-" * 5

# kind, what draws the secret, the surroundings. `{}` is the secret's place; every other brace stands as it is.
_SHAPES: tuple[tuple[str, Callable[[random.Random], str], tuple[str, ...]], ...] = (
    ("env", _password, (
        "APP_ENV=production\nDB_HOST=db.example.org\nDB_PASSWORD={}\nDB_PORT=5432\n",
        "DEBUG=1\nMYSQL_ROOT_PASSWORD={}\n",
        "REDIS_PASS={}\nREDIS_PORT=6379",
        'SMTP_USER=ana\nSMTP_PASSWORD="{}"\n',
    )),
    ("export", _password, (
        "export DB_PASS='{}'", "$ export ADMIN_PASSWORD={} && ./run.sh", "set PGPASSWORD={}\r\npsql -h db", 'export PGPASSWORD="{}"\n',
    )),
    ("inline variable", _password, (
        "PGPASSWORD={} psql -h db.example.org -U ana shop", "$ MYSQL_PWD={} mysqldump shop > shop.sql", "RESTIC_PASSWORD={} restic backup ~/work",
    )),
    ("docker", _password, (
        "docker run -d -e MYSQL_ROOT_PASSWORD={} -p 3306:3306 mysql:8", "docker run --env POSTGRES_PASSWORD={} postgres:16",
        "FROM mysql:8\nENV MYSQL_PASSWORD={}\nEXPOSE 3306\n",
    )),
    ("json", _password, (
        '{"user": "ana", "password": "{}"}', '{\n  "host": "db",\n  "dbPassword": "{}",\n  "port": 5432\n}', '{"password":"{}","remember":true}',
    )),
    ("escaped json", _password, (
        '{"payload": "{\\"user\\": \\"ana\\", \\"password\\": \\"{}\\"}"}',
        'body="{\\"login\\":\\"ana\\",\\"password\\":\\"{}\\"}" status=200',
    )),
    ("yaml", _password, (
        "database:\n  host: db.example.org\n  password: {}\n  port: 5432\n", "password: {}", "users:\n  - name: ana\n    password: '{}'\n",
        "smtp:\n  password: {}  # rotate in March\n", "environment:\n  - POSTGRES_PASSWORD={}\n  - POSTGRES_DB=shop\n",
    )),
    ("toml", _password, ('[database]\nhost = "db"\npassword = "{}"\n', "[smtp]\npassword = '{}'\nport = 587\n")),
    ("ini", _password, ("[client]\nuser = ana\npassword = {}\nhost = db\n", "[mail]\npassword={}\n", "[mysqld]\nuser=root\npassword={}\nport=3306")),
    ("properties", _password, (
        "spring.datasource.username=ana\nspring.datasource.password={}\n", "jdbc.password = {}\njdbc.pool=5\n", "db.password: {}\n",
    )),
    ("flag", _password, (
        "$ mysql --user=ana --password={} shop", "./deploy --host db --password {} --force", "$ influx auth --username ana --password '{}'\n",
    )),
    ("mysql -p", _random, ("mysql -u root -p{}", "$ mysqldump -h db -uroot -p{} shop > shop.sql", "mysqladmin -u ana -p'{}' status")),
    ("sshpass", _password, ("sshpass -p {} ssh ana@10.0.0.7", "$ sshpass -p '{}' scp a.txt ana@host:/tmp")),
    ("curl -u", _password, ("curl -u ana:{} https://api.example.org/v1/me", "$ curl -s --user 'ana:{}' https://example.org")),
    ("redis-cli", _password, ("redis-cli -h cache -a {} ping", "$ redis-cli -a '{}' --scan")),
    ("url", _password, (
        "DATABASE_URL=postgres://ana:{}@db.example.org:5432/shop", "amqp://worker:{}@queue:5672/jobs", "git clone https://ana:{}@git.example.org/a.git",
        "connecting to mongodb+srv://ana:{}@cluster0.example.net/app failed",
    )),
    ("query", _random, ("GET /login?user=ana&password={}&next=%2F HTTP/1.1", "https://api.example.org/v1/items?api_key={}x7Qd2&limit=5")),
    ("connection string", _password, (
        "Server=db;Database=shop;User Id=ana;Password={};Encrypt=true", 'psql "host=db user=ana password={} dbname=shop"',
        '"Data Source=db;User ID=sa;Pwd={};"',
    )),
    ("basic", _basic, ("Authorization: Basic {}", "> GET / HTTP/1.1\n> Host: example.org\n> Authorization: Basic {}\n>", '{"headers": {"authorization": "Basic {}"}}')),
    ("netrc", _password, ("machine api.example.org login ana password {}", "machine git.example.org\n  login ana\n  password {}\n")),
    ("pgpass", _password, ("db.example.org:5432:shop:ana:{}", "# ~/.pgpass\n*:*:*:ana:{}\nlocalhost:5432:*:bo:\n")),
    ("sql", _password, (
        "CREATE USER 'ana'@'%' IDENTIFIED BY '{}';", "ALTER USER ana WITH PASSWORD '{}';", "SET PASSWORD FOR 'ana'@'%' = PASSWORD('{}');",
        "ALTER ROLE ana PASSWORD '{}'",
    )),
    ("python", _password, (
        'conn = connect(host="db", user="ana", password="{}")', "password = '{}'\n", 'DB_PASSWORD = "{}"\nDEBUG = True\n',
        "engine = create(passwd='{}', port=5432)",
    )),
    ("other code", _password, (
        'const password = "{}";', 'String dbPassword = "{}";', "$password = '{}';", 'db.setPassword("{}");', 'password := "{}"', "{ user: 'ana', password: '{}' }",
    )),
    ("other language", _password, (
        "passwort: {}", "DB_KENNWORT={}", 'mot_de_passe = "{}"', "contraseña: {}", "contrasena={}", "senha: '{}'", "wachtwoord: {}",
        "haslo={}", "пароль: {}", "密码：{}",
    )),
    ("prose", _phrase, (
        "the db password is {}", "The password for staging is {}, please don't share it.", "ok so i changed the password to {} yesterday",
        "wifi password: {}", "my password was {} until May", 'use ana / the password is "{}" for now',
    )),
    ("prose, quoted", _password, ("The password is `{}`.", "set the password to '{}' and try again", "admin password: `{}`", "- **Password:** {}")),
    ("markdown", _password, (
        "| Name | Value |\n|---|---|\n| DB_USER | ana |\n| DB_PASSWORD | `{}` |\n", "Log in with `password={}` at the prompt.",
        "```\nDB_PASSWORD={}\n```\n", "* password: `{}`\n* user: `ana`\n",
    )),
    ("log", _password, (
        "2025-03-01T10:11:12Z DEBUG auth login user=ana password={} ip=10.0.0.4", 'INFO  config loaded: {"db": {"password": "{}"}}',
        "[worker-3] env: DB_PASSWORD={}",
    )),
    ("traceback", _password, (
        'Traceback (most recent call last):\n  File "app.py", line 9, in <module>\n    connect(password="{}")\nOperationalError: refused\n',
        "KeyError: 'x'\n  locals: {'user': 'ana', 'password': '{}'}\n", "pydantic: Settings(user='ana', password='{}', port=5432)",
    )),
    ("diff", _password, (
        "--- a/.env\n+++ b/.env\n@@ -1,2 +1,2 @@\n-DB_PASSWORD={}\n+DB_PASSWORD=${DB_PASSWORD}\n", "@@ -3 +3 @@\n+  password: {}\n", '-    "password": "{}",\n+    "password": "${PW}",\n',
    )),
    ("xml", _password, ("<user>ana</user><password>{}</password>", '<add key="DbPassword" value="{}"/>', '<bean>\n  <property name="password" value="{}"/>\n</bean>')),
    ("kubernetes", _password, ("    env:\n    - name: DB_PASSWORD\n      value: {}\n", "stringData:\n  username: ana\n  password: {}\n")),
    ("github", _github, ("remote: https://{}@github.com/o/r.git", "GITHUB_TOKEN={}", "I use {} on this machine", "+token: {}")),
    ("aws", _aws_id, ("aws_access_key_id = {}", "AWS_ACCESS_KEY_ID={}\n", "key {} was rotated")),
    ("aws secret", _key(40), ("aws_secret_access_key = {}\n", "export AWS_SECRET_ACCESS_KEY={}", '"SecretAccessKey": "{}"')),
    ("slack", _slack, ("SLACK_BOT_TOKEN={}", "curl -H 'Authorization: Bearer {}' https://slack.com/api/auth.test", '{"token": "{}"}')),
    ("openai", _openai, ("OPENAI_API_KEY={}", 'client = OpenAI(api_key="{}")', "here is my key: {}")),
    ("jwt", _jwt, ("Authorization: Bearer {}", "token={}", "session {} expired")),
    ("bearer", _key(40), ("Authorization: Bearer {}", "-H 'authorization: bearer {}'")),
    ("api key", _key(32), ("X-Api-Key: {}", "api_key: '{}'", "my API key is {}", "STRIPE_SECRET={}", "CLIENT_SECRET='{}'")),
    ("sentry dsn", _from(_HEX, 32), ("SENTRY_DSN=https://{}@o0.ingest.sentry.io/1", 'sentry_sdk.init(dsn="https://{}@o44.ingest.us.sentry.io/4506")')),
    ("private key", _key_body, (
        f"{_DASHES}BEGIN RSA PRIVATE KEY{_DASHES}\n{{}}\n{_DASHES}END RSA PRIVATE KEY{_DASHES}\n",
        f'{{"private_key": "{_DASHES}BEGIN PRIVATE KEY{_DASHES}\\n{{}}\\n{_DASHES}END PRIVATE KEY{_DASHES}\\n"}}',
    )),
    ("private passage", _password, ("My PIN is <private>{}</private>, keep it.", "a <private>{}")),
)  # fmt: skip


def planted(seed: int = 10, count: int = 200) -> list[Planted]:
    """Return `count` texts with one secret each, the forms in turn; `count` from 44 on covers every form."""
    draw = random.Random(seed)
    texts = []
    for number in range(count):
        kind, secret_of, surroundings = _SHAPES[number % len(_SHAPES)]
        secret = secret_of(draw)
        texts.append(
            Planted(
                kind=kind,
                text=surroundings[(number // len(_SHAPES)) % len(surroundings)].replace("{}", secret),
                secret=secret,
            )
        )
    return texts


def every_surrounding(seed: int = 10) -> list[Planted]:
    """Return one text for every surrounding of every form."""
    draw = random.Random(seed)
    return [
        Planted(kind=kind, text=surrounding.replace("{}", secret), secret=secret)
        for kind, secret_of, surroundings in _SHAPES
        for surrounding in surroundings
        for secret in (secret_of(draw),)
    ]


LOOK_ALIKES: tuple[str, ...] = (
    # declarations and other code
    "password: str", "password: str | None = None", "    password: bytes\n    user: str\n", "password: string;", "password?: string",
    "    password: SecretStr\n", "passwordField: HTMLInputElement", "password: HTMLInputElement", "password: Mapped[str]",
    "password = None", "password = null;", 'password = ""', 'password=os.environ["X"]', "password = os.getenv('DB_PASSWORD')",
    "password=settings.DB_PASSWORD,", "password=password", "connect(user=user, password=password)", "connect(password=given)",
    "password: process.env.DB_PASSWORD", "if password == hash(given):", "if password != expected:", "password = generate()",
    "password = getpass.getpass()", "PASSWORD_MIN_LENGTH = 8", "password_reset_timeout = 259200", "def check(password, hashed):",
    "password_hasher = PasswordHasher()", 'type="password"', '<input type="password" name="password" id="password">',
    '<label for="password">Password</label>', "self.password = password", "this.password = password;", "return password",
    "user.password.encode()", "lambda password: password.strip()", 'form["password"]', "assert password",
    # references and placeholders
    "password: ${DB_PASSWORD}", "DB_PASSWORD=$DB_PASSWORD", "password: {{ db_password }}", "PASSWORD=%PASSWORD%", "<password>",
    "DB_PASSWORD=<your password>", "DB_PASSWORD=changeme", "password: '********'", "postgres://user:${PASS}@db/shop",
    "password: !vault |", "password: *default_password", "--password-stdin", "mysql -u root -p", "mysql -u root -p shop",
    "sshpass -p $PASS ssh host", "curl -u $USER:$PASS https://example.org", "curl -u user:password https://example.org",
    "docker login --password-stdin", "PASSWORD_FILE=/run/secrets/db_password", "password_file: /run/secrets/db",
    "DB_PASSWORD_FILE=/run/secrets/db", "redis-cli -a $REDIS_PASS", "IDENTIFIED BY '%s'", "IDENTIFIED BY ?",
    # talk
    "The password is stored hashed.", "the password is stored hashed", "Password: please choose one", "password: required",
    "Password: required", "The password is wrong.", "the password is case-sensitive", "my password is out-of-date",
    "Please pass the --password flag.", "Use --password or --token.", "Change the password to something better.",
    "I forgot the password.", "The password was changed yesterday", "password is required", "Enter password:", "Password:",
    "- password: optional", "请输入密码：这是一个秘密的句子", "| password | string | required |", "| user | password | host |", "Passwort vergessen?",
    "Das Passwort ist falsch.", "mot de passe oublié", "la contraseña es obligatoria", "Password reset: done", "password policy: strict",
    "The secret to good bread is patience.", "The token is invalid.", "tokens: 4096", "api_key: str", "key: value",
    # data of other kinds
    '{"type": "password"}', '{"password": null}', '{"password": true}', '{"password": ""}', '{"password": "string"}',
    '{"password": "required|min:8"}', '{"grant_type": "password"}', '{"label": "Password"}', '{"password": {"type": "string"}}',
    "https://example.org/password/reset", "https://example.org/login?next=/password", "git@github.com:owner/repo.git",
    "commit 3f2b9c1 password form", "tests/test_password.py::test_wrong PASSED", "src/password.ts:14:7: error TS2322",
)  # fmt: skip
