"""The shapes of credentials, as data. It knows nothing of texts: `shapes` looks for them.

A rule is tried only where one of its `anchors` (exact substrings) stands, so a text without them costs nothing. Each
pattern matches the credential alone, with bounded quantifiers: work at one anchor is bounded by a constant. A pattern
is compiled where its anchor first stands: all 126 at once held up each start of the daemon for 20 ms. The formats are
facts that the issuers publish (prefix, length, alphabet); where they differ over time the wider one counts. A new
format is one line here, and one line in the table of the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

ALNUM_BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # in JSON inside JSON, a line break before a token is `\n`
END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One shape: `regex` matches the credential (its group `s`, where it has one) `back` characters before an anchor.

    `back` lists every distance to try, longest first: 0 for a prefix, more for an anchor inside the credential.
    `context`: words of which one stands (lower case) within the 64 characters before, for shapes that alone prove
    nothing. `random`: the match must also look random; for prefixes that ordinary identifiers share.
    """

    kind: str
    anchors: tuple[str, ...]
    regex: str
    back: tuple[int, ...] = (0,)
    context: tuple[str, ...] = ()
    random: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled `regex`."""
        return _compiled(self.regex)


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


def _rule(
    kind: str,
    anchors: str,
    body: str,
    *,
    glued: bool = False,
    back: tuple[int, ...] = (0,),
    context: tuple[str, ...] = (),
    random: bool = False,
) -> Rule:
    """Return one line of the table. `glued`: the prefix is so distinctive that a letter may stand before it."""
    regex = ("" if glued else ALNUM_BEFORE) + body + END
    return Rule(kind=kind, anchors=tuple(anchors.split()), regex=regex, back=back, context=context, random=random)


_HEX32 = r"[0-9a-f]{32}"
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

RULES: tuple[Rule, ...] = (
    # clouds
    _rule("aws-access-key-id", "AKIA ASIA ABIA ACCA", r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}"),
    _rule("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{109,269}={0,2}"),
    _rule("google-api-key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _rule("google-oauth-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}", glued=True),
    _rule("google-oauth-token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,2048}"),
    _rule("google-refresh-token", "1//0", r"1//0[A-Za-z0-9_-]{40,200}"),
    _rule(
        "azure-storage-key",
        "AccountKey= SharedAccessKey= accountkey= sharedaccesskey=",
        r"(?i:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{40,90}={0,2})",
        glued=True,
    ),
    _rule("azure-client-secret", "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", back=(4,)),
    _rule("azure-devops-token", "AZDO", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", back=(76,)),
    _rule("azure-function-key", "AzFu", r"[A-Za-z0-9_-]{44}AzFu[A-Za-z0-9_-]{4,6}={0,2}", back=(44,)),
    _rule("signed-url", "sig=", r"sig=(?P<s>[A-Za-z0-9%+/_-]{40,128}={0,2})"),
    _rule("signed-url", "-Signature=", r"-Signature=(?P<s>[0-9a-fA-F]{64,512})", glued=True),
    _rule("alibaba-access-key", "LTAI", r"LTAI[A-Za-z0-9]{16,26}", random=True),
    _rule("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{64}", glued=True),
    _rule("heroku-key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{36,66}", glued=True),
    _rule("cloudflare-token", "cfut_ cfat_ cfk_", r"cf(?:ut|at|k)_[A-Za-z0-9_-]{37,60}"),
    _rule("cloudflare-origin-key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    _rule("scaleway-key", "SCW", r"SCW[A-Z0-9]{17}", context=("scaleway", "scw_", "access")),
    _rule("fly-token", "fm1r_ fm2_ fo1_", r"(?:fm1[ar]_|fm2_|fo1_)[A-Za-z0-9+/=_-]{40,2048}"),
    _rule("netlify-token", "nfp_ nfc_", r"nf[pc]_[A-Za-z0-9]{36,60}"),
    _rule("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", r"vc[piark]_[A-Za-z0-9]{24,80}", random=True),
    _rule("render-key", "rnd_", r"rnd_[A-Za-z0-9]{28,40}", random=True),
    _rule("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80}", back=(14,)),
    _rule("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    _rule("doppler-token", "dp.", r"dp\.(?:pt|ct|st|sa|scim|audit)\.(?:[a-z0-9_-]{1,40}\.)?[A-Za-z0-9]{40,44}"),
    _rule("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    _rule("tailscale-key", "tskey-", r"tskey-(?:[a-z]+-)?[A-Za-z0-9]{6,24}-[A-Za-z0-9]{16,48}", glued=True),
    _rule("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}", glued=True),
    _rule("supabase-token", "sbp_ sb_secret_", r"(?:sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,64})"),
    _rule("databricks-token", "dapi dkea dose", r"d(?:api|kea|ose)[0-9a-f]{32}(?:-\d)?"),
    _rule("clickhouse-key", "4b1d", r"4b1d[A-Za-z0-9]{38}", random=True),
    _rule("mongodb-atlas-key", "mdb_sa_", r"mdb_sa_(?:id|sk)_[A-Za-z0-9_-]{24,64}", glued=True),
    # code hosts and registries
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}", glued=True),
    _rule("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{60,255}", glued=True),
    _rule(
        "gitlab-token",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- glagent- glft- glimt- gloas- glffct-",
        r"gl(?:pat|dt|rt|ptt|cbt|soat|agent|ft|imt|oas|ffct)-[A-Za-z0-9_.-]{19,255}[A-Za-z0-9_]",
        glued=True,
    ),
    _rule("gitlab-token", "GR1348941", r"GR1348941[A-Za-z0-9_-]{20}"),
    _rule("bitbucket-token", "ATBB", r"ATBB[A-Za-z0-9]{28}[A-F0-9]{0,8}", random=True),
    _rule("atlassian-token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{60,250}", glued=True),
    _rule("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}", glued=True),
    _rule("pypi-token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,1000}", glued=True),
    _rule("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}", glued=True),
    _rule("crates-token", "cio", r"cio[A-Za-z0-9]{32}", random=True),
    _rule("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    _rule("clojars-token", "CLOJARS_", r"CLOJARS_[0-9a-z]{60}", glued=True),
    _rule("docker-token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[A-Za-z0-9_-]{24,40}", glued=True),
    _rule("artifactory-key", "AKCp cmVmd", r"(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})"),
    _rule("sonar-token", "sqp_ squ_ sqa_", r"sq[pua]_[0-9a-f]{40}"),
    _rule("snyk-token", "snyk_", r"snyk_[a-z]{2,5}\.[A-Za-z0-9_.-]{20,200}", glued=True),
    _rule("circleci-token", "CCIPAT_ CCIPRJ_", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{16,32}_[0-9a-f]{40}", glued=True),
    _rule("buildkite-token", "bkua_", r"bkua_[0-9a-z]{40}"),
    _rule("sourcegraph-token", "sgp_", r"sgp_(?:[A-Za-z0-9]{16}_|local_)?[0-9a-f]{40}"),
    # models
    _rule("anthropic-key", "sk-ant-", r"sk-ant-(?:[a-z]{2,8}\d{2}-)?[A-Za-z0-9_-]{24,255}", glued=True, random=True),
    _rule("openrouter-key", "sk-or-", r"sk-or-v1-[0-9a-f]{64}"),
    _rule("langfuse-key", "sk-lf-", rf"sk-lf-{_UUID}"),
    _rule(
        "openai-key",
        "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-",
        r"sk-(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_-]{20,255}",
        random=True,
    ),
    _rule("openai-key", "sk-", r"sk-[A-Za-z0-9]{20}(?:T3BlbkFJ)?[A-Za-z0-9]{0,60}", random=True),
    _rule("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{34,40}", random=True),
    _rule("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,64}", random=True),
    _rule("xai-key", "xai-", r"xai-[A-Za-z0-9]{60,90}"),
    _rule("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{40,64}"),
    _rule("replicate-token", "r8_", r"r8_[A-Za-z0-9]{37,40}"),
    _rule("nvidia-key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{50,90}"),
    _rule("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", glued=True),
    _rule("tavily-key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9-]{30,64}", random=True),
    _rule("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,70}", glued=True),
    _rule("elevenlabs-key", "sk_", r"sk_[0-9a-f]{48}"),
    _rule("firecrawl-key", "fc-", rf"fc-{_HEX32}"),
    _rule("cerebras-key", "csk-", r"csk-[a-z0-9]{48}"),
    # chat and mail
    _rule(
        "slack-token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp- xwfp- xoxe.",
        r"(?:xox[abeoprscd][.-]|xapp-|xwfp-)[A-Za-z0-9%._-]{18,400}[A-Za-z0-9]",
        glued=True,
        random=True,
    ),
    _rule("slack-token", "xoxb- xoxp- xoxa- xoxe-", r"xox[abpe](?:-\d{9,14}){1,3}-[A-Za-z0-9]{20,64}", glued=True),
    _rule(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{24,120}",
    ),
    _rule(
        "discord-webhook",
        "/api/webhooks/",
        r"/api/webhooks/(?P<s>\d{17,20}/[A-Za-z0-9_-]{60,90})",
        glued=True,
    ),
    _rule(
        "teams-webhook",
        "/IncomingWebhook/",
        rf"/IncomingWebhook/{_HEX32}/{_UUID}(?:/[A-Za-z0-9_-]{{20,80}})?",
        glued=True,
    ),
    _rule("zapier-webhook", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/\d+/[A-Za-z0-9]{5,20}"),
    _rule("telegram-token", ":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![_-])", back=(10, 9, 8)),
    _rule("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _rule("mailchimp-key", "-us", rf"{_HEX32}-us\d{{1,2}}", back=(32,)),
    _rule("mailgun-key", "key- pubkey-", rf"(?:pub)?key-{_HEX32}"),
    _rule("brevo-key", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}", glued=True),
    _rule("resend-key", "re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,28}", random=True),
    # money and shops
    _rule(
        "stripe-key",
        "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_",
        r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,247}",
        random=True,
    ),
    _rule("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,64}={0,2}", random=True),
    _rule("square-token", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,60}"),
    _rule("square-token", "EAAA", r"EAAA[A-Za-z0-9_-]{60}(?![_-])", random=True),
    _rule("braintree-token", "access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    _rule("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", glued=True),
    _rule("razorpay-key", "rzp_live_ rzp_test_", r"rzp_(?:live|test)_[A-Za-z0-9]{14}"),
    _rule("flutterwave-key", "FLWSECK", r"FLWSECK(?:_TEST|_PROD)?-[A-Za-z0-9-]{16,64}"),
    _rule("plaid-token", "access-", rf"access-(?:sandbox|development|production)-{_UUID}"),
    _rule("shippo-token", "shippo_", r"shippo_(?:live|test)_[0-9a-f]{40}", glued=True),
    _rule("easypost-key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),
    # tools
    _rule("linear-key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}", glued=True),
    _rule("notion-token", "ntn_", r"ntn_[A-Za-z0-9]{40,60}"),
    _rule("notion-token", "secret_", r"secret_[A-Za-z0-9]{43}", random=True),
    _rule("postman-key", "PMAK-", r"PMAK-[0-9a-fA-F]{24}-[0-9a-fA-F]{34}", glued=True),
    _rule("figma-token", "figd_ figo_ figu_ figor_", r"fig(?:d|o|u|or)_[A-Za-z0-9_-]{36,60}"),
    _rule("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _rule("hubspot-token", "pat-", rf"pat-(?:na|eu|ap)\d-{_UUID}"),
    _rule("asana-token", "/1", r"[12]/\d{14,18}(?:/\d{14,18})?:[0-9a-f]{32}", back=(1,)),
    _rule("dropbox-token", "sl.", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,2048}"),
    _rule("grafana-token", "glsa_ glc_", r"(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,400}={0,3})"),
    _rule("newrelic-key", "NRAK- NRAA- NRRA- NRII- NRJS- NRSP-", r"NR(?:AK|AA|RA|II|JS|SP)-?[A-Za-z0-9_-]{19,48}"),
    _rule("newrelic-key", "NRAL", r"[0-9a-f]{36}NRAL", back=(36,)),
    _rule("sentry-token", "sntrys_ sntryu_ sntrya_", r"sntry[sua]_[A-Za-z0-9+/=_-]{40,500}", glued=True),
    _rule(
        "sentry-dsn",
        "://",
        r"://(?P<s>[0-9a-f]{32}(?::[0-9a-f]{32})?)(?=@[\w.-]{0,200}/\d)",
        glued=True,
    ),
    _rule(
        "sentry-dsn",
        "://",
        r"://(?P<s>[A-Za-z0-9]{8,64}(?::[A-Za-z0-9]{8,64})?)(?=@[\w.-]{0,60}sentry[\w.-]{0,60}/\d)",
        glued=True,
    ),
    _rule("datadog-key", "ddp_ ddapp_ ddapi_", r"dd(?:p|app|api)_[A-Za-z0-9]{32,64}", random=True),
    _rule("dynatrace-token", "dt0", r"dt0[a-zA-Z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _rule("launchdarkly-key", "sdk- api- mob-", rf"(?:sdk|api|mob)-{_UUID}"),
    _rule("posthog-key", "phx_", r"phx_[A-Za-z0-9]{40,60}"),
    _rule("mapbox-token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{30,200}\.[A-Za-z0-9_-]{20,40}"),
    _rule("typeform-token", "tfp_", r"tfp_[A-Za-z0-9_.=-]{40,80}"),
    _rule("readme-key", "rdme_", r"rdme_[a-z0-9]{70}"),
    _rule("prefect-key", "pnu_", r"pnu_[A-Za-z0-9]{36}"),
    _rule("infracost-key", "ico-", r"ico-[A-Za-z0-9]{32}"),
    _rule("contentful-token", "CFPAT-", r"CFPAT-[A-Za-z0-9_-]{40,64}", glued=True),
    _rule("harness-token", "pat. sat.", r"[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    _rule("octopus-key", "API-", r"API-[A-Z0-9]{25,40}", random=True),
    _rule(
        "onepassword-token",
        "ops_eyJ A3-",
        r"(?:ops_eyJ[A-Za-z0-9+/=_-]{100,3000}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3})",
    ),
    _rule("facebook-token", "EAA", r"EAA[A-Za-z0-9]{100,400}", random=True),
    _rule("twitter-bearer", "AAAAAAAAAAAAAAAAAAAAA", r"AAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]{60,140}"),
    _rule("yandex-token", "AQVN y0_", r"(?:AQVN[A-Za-z0-9_-]{35,38}|y0_[A-Za-z0-9_-]{50,70})"),
    # keys and standards
    _rule("age-secret-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", glued=True),
    _rule(
        "jwt",
        "eyJ",
        r"(?<![.+/_-])eyJ[A-Za-z0-9_-]{10,4096}\.eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{16,2048}",
    ),
    _rule(
        "jwt",
        "eyJ",
        r"(?<![.+/_-])eyJ[A-Za-z0-9_-]{10,4096}(?:\.[A-Za-z0-9_-]{0,2048}){2}\.[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{16,64}",
    ),
    _rule(
        "password-hash",
        "$2a$ $2b$ $2y$ $5$ $6$ $y$ $7$ $apr1$ $argon2",
        r"\$(?:2[aby]\$\d\d\$[A-Za-z0-9./]{53}|(?:5|6|7|y|apr1)\$[A-Za-z0-9./=$]{20,200}"
        r"|argon2(?:id|i|d)\$[A-Za-z0-9+/=,$]{30,300})",
        glued=True,
    ),
)

RUN_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # Shapes without an anchor: tried on every run of 32 characters or more, which they must fill.
    ("twilio-key", re.compile(r"SK[0-9a-f]{32}")),
    ("twilio-account", re.compile(r"AC[0-9a-f]{32}")),
    ("mailgun-key", re.compile(r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}")),
)

SCANS: tuple[tuple[str, re.Pattern[str]], ...] = (
    # Shapes that neither an anchor nor a run finds: these walk the text.
    (
        "discord-token",
        re.compile(
            r"[MNO](?:(?<![\w.+/-].)|(?<=\\[nrt].))[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])"
        ),
    ),
)

SERVICE_KINDS: tuple[tuple[str, str], ...] = (
    # A word in an assigned key's own name tells whose credential it is; first match wins.
    ("aws", "aws-secret-key"),
    ("datadog", "datadog-key"),
    ("dd_", "datadog-key"),
    ("heroku", "heroku-key"),
    ("cloudflare", "cloudflare-token"),
    ("cf_", "cloudflare-token"),
    ("twilio", "twilio-key"),
    ("mailgun", "mailgun-key"),
    ("newrelic", "newrelic-key"),
    ("new_relic", "newrelic-key"),
    ("azure", "azure-key"),
    ("paypal", "paypal-secret"),
    ("okta", "okta-token"),
    ("algolia", "algolia-key"),
    ("mistral", "mistral-key"),
    ("cohere", "cohere-key"),
    ("together", "together-key"),
    ("zendesk", "zendesk-token"),
    ("postmark", "postmark-token"),
)

CONTEXT_KINDS: tuple[str, ...] = (
    "private-key",
    "password",
    "url-password",
    "url-token",
    "authorization",
    "bearer-token",
    "cookie",
    "api-key",
    "secret",
    "token",
    "credential",
    "card-number",
    "high-entropy",
)

KINDS: frozenset[str] = frozenset(
    [rule.kind for rule in RULES]
    + [kind for kind, _ in RUN_RULES]
    + [kind for kind, _ in SCANS]
    + [kind for _, kind in SERVICE_KINDS]
    + list(CONTEXT_KINDS)
)
