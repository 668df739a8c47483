"""How issued secrets look: tokens that a provider marks with a prefix, signed tokens, URLs.

The shapes are from the providers' own pages on token formats. Every expression starts at the start
of a run of its own characters, so no character is looked at more than a few times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dg_lsp.privacy.looks import is_placeholder, is_random

_START = r"(?<![A-Za-z0-9_-])"
_PREFIXED = re.compile(
    _START
    + r"(?:"
    + "|".join(
        (
            r"(?:AKIA|ASIA|ABIA|ACCA)(?P<aws>[A-Z2-7]{16})(?![A-Z0-9])",
            r"AIza(?P<google_key>[A-Za-z0-9_-]{35})",
            r"ya29\.(?P<google_oauth>[A-Za-z0-9_-]{20,})",
            r"GOCSPX-(?P<google_client>[A-Za-z0-9_-]{20,})",
            r"gh[pousr]_(?P<github>[A-Za-z0-9]{36,})",
            r"github_pat_(?P<github_fine>[A-Za-z0-9_]{22,})",
            r"gl(?:pat|dt|rt|ft|soat|cbt|ptt|imt|agent|oas)-(?P<gitlab>[A-Za-z0-9_-]{20,})",
            r"xox[abeoprs]-(?P<slack>[A-Za-z0-9-]{10,})",
            r"xapp-(?P<slack_app>[A-Za-z0-9-]{10,})",
            r"(?:sk|rk)_(?:live|test)_(?P<stripe>[A-Za-z0-9]{16,})",
            r"whsec_(?P<stripe_hook>[A-Za-z0-9+/=]{24,})",
            r"sk-(?:ant|proj|svcacct|admin|or)-(?P<model_service>[A-Za-z0-9_-]{20,})",
            r"sk-(?P<model_service_old>[A-Za-z0-9]{32,})",
            r"npm_(?P<npm>[A-Za-z0-9]{36})",
            r"pypi-(?P<pypi>[A-Za-z0-9_-]{50,})",
            r"hf_(?P<hub>[A-Za-z0-9]{30,})",
            r"do[opr]_v1_(?P<digital_ocean>[a-f0-9]{64})",
            r"SG\.(?P<sendgrid>[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64})",
            r"shp(?:at|ca|pa|ss)_(?P<shopify>[a-fA-F0-9]{32})",
            r"dapi(?P<databricks>[a-f0-9]{32})",
            r"hv[bs]\.(?P<vault>[A-Za-z0-9_-]{24,})",
            r"lin_api_(?P<linear>[A-Za-z0-9]{40})",
            r"AGE-SECRET-KEY-1(?P<age>[0-9A-Z]{58})",
        )
    )
    + r")"
)
_AZURE_CLIENT = re.compile(
    r"(?<![A-Za-z0-9_~.-])(?P<azure>[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~.-])"
)
_AZURE_KEY = re.compile(
    r"(?:AccountKey|SharedAccessKey|SharedAccessSignature|sig)=(?P<azure>[A-Za-z0-9+/%=]{32,})"
)
_SIGNED = re.compile(
    r"(?<![A-Za-z0-9_.-])eyJ(?P<jwt>[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)+)"
)
_SLACK_HOOK = re.compile(r"hooks\.slack\.com/(?:services|workflows)/(?P<hook>[A-Za-z0-9/]{20,})")
_AUTHORIZATION = re.compile(
    r"\b(?:Bearer|Basic|Token)\s{1,4}(?P<credentials>[A-Za-z0-9._~+/-]{16,}={0,2})", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"""://[^\s/?#@:"'`<>]{0,256}:(?P<url>[^\s/?#@"'`<>]{1,256})@""")

_HINT_WORDS = (
    "akia asia abia acca aiza ya29. gocspx- ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- "
    "glrt- glft- glsoat- glcbt- glptt- glimt- glagent- gloas- xox xapp- _live_ _test_ whsec_ sk- "
    "npm_ pypi- hf_ _v1_ sg. shp dapi hvs. hvb. lin_api_ age-secret 8q~ key= sig= sharedaccess eyj "
    "hooks.slack bearer basic token ://"
)
HINTS = tuple(_HINT_WORDS.split())
"""Of which one is in every line with a secret of these kinds, in lower case."""

Span = tuple[int, int]


def issued_secrets(line: str) -> Iterator[Span]:
    """Where secrets stand in a line that are known by their shape, without what marks them."""
    for pattern in (_PREFIXED, _AZURE_CLIENT, _AZURE_KEY, _SIGNED, _SLACK_HOOK):
        for found in pattern.finditer(line):
            assert found.lastgroup is not None
            yield found.span(found.lastgroup)
    for found in _AUTHORIZATION.finditer(line):
        if is_random(found["credentials"]):
            yield found.span("credentials")
    for found in _URL_PASSWORD.finditer(line):
        if not is_placeholder(found["url"]):
            yield found.span("url")
