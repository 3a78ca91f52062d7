"""Write `tests/data/signed_cards`: cards signed by each SDK, and the public keys that verify them.

    python tests/peers/setup.py signing0.3 signing1.1.2 signing1.3 js
    python tests/peers/sign_cards.py

Every run makes new keys; private keys are not written.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[1] / ".peers"
OUT = HERE.parent / "data" / "signed_cards"

Json = dict[str, Any]

_BASE_1_0: Json = {
    "name": "Concierge",
    "description": "Plans trips",
    "supportedInterfaces": [
        {
            "url": "https://agent.example.com/a2a",
            "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0",
        }
    ],
    "version": "1.0.0",
    "capabilities": {"streaming": True, "pushNotifications": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "plan", "name": "Plan", "description": "Plans a trip", "tags": ["travel"]}],
}
_BASE_0_3: Json = {
    **{name: value for name, value in _BASE_1_0.items() if name != "supportedInterfaces"},
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "url": "https://agent.example.com/a2a",
}
_PARAMS = {"share": 0.5, "whole": 1.0, "tiny": 1e-06, "count": 3}
_UMLAUTS = {"name": "Zürcher Gästeführer", "description": "Reisepläne für Größe €5 🚆"}


def _changes(old: bool) -> dict[str, Json]:
    """Return the members that make each kind of card."""
    extension = {"uri": "https://example.com/ext/v1", "description": "Shares", "params": _PARAMS}
    if old:
        schemes: Json = {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "oauth": {
                "type": "oauth2",
                "flows": {
                    "clientCredentials": {
                        "tokenUrl": "https://example.com/token",
                        "scopes": {"read": "Read"},
                    }
                },
            },
        }
        security: Json = {
            "securitySchemes": schemes,
            "security": [{"key": []}, {"oauth": ["read"]}],
        }
    else:
        schemes = {
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "oauth": {
                "oauth2SecurityScheme": {
                    "flows": {
                        "clientCredentials": {
                            "tokenUrl": "https://example.com/token",
                            "scopes": {"read": "Read"},
                        }
                    }
                }
            },
        }
        security = {
            "securitySchemes": schemes,
            "securityRequirements": [
                {"schemes": {"key": {"list": []}}},
                {"schemes": {"oauth": {"list": ["read"]}}},
            ],
        }
    return {
        "ascii": {},
        "umlauts": _UMLAUTS,
        "fractions": {"capabilities": {"streaming": True, "extensions": [extension]}},
        "security": security,
    }


def _call(command: list[str], order: Json) -> Json:
    done = subprocess.run(
        command, input=json.dumps(order), capture_output=True, text=True, check=True
    )
    signed: Json = json.loads(done.stdout)
    return signed


def _python(environment: str, script: str) -> list[str]:
    return [str(PEERS / environment / "bin" / "python"), str(HERE / "signers" / script)]


def main() -> None:
    """Sign every card with every SDK."""
    javascript = [
        str(shutil.which("node")),
        str(HERE / "signers" / "sign_js.mjs"),
        str(PEERS / "js"),
    ]
    signers = {
        "python-0.3": (_python("signing0.3", "sign_0_3.py"), True, False),
        "python-1.1.2": (_python("signing1.1.2", "sign_1_x.py"), False, False),
        "python-1.3": (_python("signing1.3", "sign_1_x.py"), False, False),
        "javascript-1.3": (javascript, False, False),
        "javascript-1.3-object": (javascript, False, True),
    }
    keys = []
    for signer, (command, old, as_object) in signers.items():
        private = generate_private_key(SECP256R1())
        key = {**ECAlgorithm.to_jwk(private, as_dict=True), "kid": signer}
        keys.append({**ECAlgorithm.to_jwk(private.public_key(), as_dict=True), "kid": signer})
        header = {
            "alg": "ES256",
            "typ": "JOSE",
            "kid": signer,
            "jku": "https://agent.example.com/jwks.json",
        }
        (OUT / signer).mkdir(parents=True, exist_ok=True)
        for kind, changes in _changes(old).items():
            card = {**(_BASE_0_3 if old else _BASE_1_0), **changes}
            signed = _call(
                command, {"card": card, "key": key, "header": header, "object": as_object}
            )
            text = json.dumps(signed, ensure_ascii=False, indent=2)
            (OUT / signer / f"{kind}.json").write_text(text + "\n", encoding="utf-8")
    (OUT / "keys.json").write_text(json.dumps({"keys": keys}, indent=2) + "\n")


if __name__ == "__main__":
    main()
