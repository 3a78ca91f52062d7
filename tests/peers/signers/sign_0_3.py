"""Sign a card with the Python SDK 0.3: JSON with `card`, `key` and `header` on stdin, the signed
card on stdout."""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import create_agent_card_signer
from jwt import PyJWK

order = json.load(sys.stdin)
sign = create_agent_card_signer(PyJWK(order["key"]), order["header"])
signed = sign(AgentCard.model_validate(order["card"]))
json.dump(signed.model_dump(mode="json", by_alias=True, exclude_none=True), sys.stdout)
