"""Sign a card with a Python SDK 1.x: JSON with `card`, `key` and `header` on stdin, the signed card
on stdout."""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import create_agent_card_signer
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt import PyJWK

order = json.load(sys.stdin)
sign = create_agent_card_signer(PyJWK(order["key"]), order["header"])
signed = sign(ParseDict(order["card"], AgentCard()))
json.dump(MessageToDict(signed), sys.stdout)
