"""Messages that carry known extensions, in 1.0 form, as their specifications write them; and what
each says."""

from __future__ import annotations

from typing import Any

A2UI_URI = "https://a2ui.org/a2a-extension/a2ui/v0.9"
LATENCY_URI = "https://github.com/twilio-labs/a2a-latency-extension"
PASSPORT_URI = "https://a2aprotocol.ai/ext/secure-passport/v1"
SAMPLES = "github.com/a2aproject/a2a-samples/extensions"
_PART = "artifactUpdate.artifact.parts[0].data"
TRACE_URI = f"https://{SAMPLES}/traceability/v1"


def request(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a request with a message of these parts."""
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": list(parts), **members}}


def artifact(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return an artifact update."""
    made = {"artifactId": "a", "parts": list(parts), **members}
    return {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": made}}


def status(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a status update whose message has these parts."""
    message = {"messageId": "s", "role": "ROLE_AGENT", "parts": list(parts), **members}
    return {
        "statusUpdate": {
            "taskId": "t",
            "status": {"state": "TASK_STATE_WORKING", "message": message},
        }
    }


def card(uri: str, **params: Any) -> dict[str, Any]:
    """Return a card that declares this extension."""
    return {"name": "agent", "capabilities": {"extensions": [{"uri": uri, "params": params}]}}


def user_interface(
    *messages: dict[str, Any], media: str = "application/a2ui+json"
) -> dict[str, Any]:
    """Return a part with messages of A2UI."""
    return {"data": list(messages), "metadata": {"mimeType": media}}


SURFACE = {"surfaceUpdate": {"surfaceId": "main", "components": [{"id": "a"}, {"id": "b"}]}}
CART = {
    "contents": {
        "id": "cart_1",
        "payment_request": {
            "details": {
                "displayItems": [{"label": "shoes", "amount": {"currency": "USD", "value": 120.0}}],
                "total": {"label": "Total", "amount": {"currency": "USD", "value": 120.0}},
            }
        },
    },
    "merchant_signature": "sig_merchant_1",
}
PAYMENT = {
    "payment_mandate_contents": {
        "payment_mandate_id": "pm_1",
        "payment_details_total": {"label": "Total", "amount": {"currency": "EUR", "value": 12.5}},
    },
    "user_authorization": "eyJhbGciOiJub25lIn0.e30.",
}
STEPS = {
    "trace_id": "t-1",
    "steps": [
        {"step_id": "1", "step_action": {"tool_invocation": {"tool_name": "search"}}},
        {"step_id": "2", "stepAction": {"agentInvocation": {"agentName": "planner"}}},
    ],
}

SPOKEN: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "a2ui 0.8": (
        artifact({"data": SURFACE, "metadata": {"mimeType": "application/json+a2ui"}}),
        "",
        ["A2UI at artifactUpdate.artifact.parts[0].data: surfaceUpdate main (2 components)"],
    ),
    "a2ui 0.9": (
        status(
            user_interface(
                {"version": "v0.9", "createSurface": {"surfaceId": "main", "catalogId": "c"}},
                {"version": "v0.9", "updateComponents": {"surfaceId": "main", "components": [{}]}},
                {"version": "v0.9", "deleteSurface": {"surfaceId": "old"}},
                {"version": "v0.9", "updateDataModel": {"surfaceId": "main", "path": "/user"}},
            )
        ),
        "",
        [
            (
                "A2UI at statusUpdate.status.message.parts[0].data: createSurface main, "
                "updateComponents main (1 component), deleteSurface old and 1 more"
            )
        ],
    ),
    "a2ui media type of the part": (
        request(
            {
                "data": {"userAction": {"name": "submit", "surfaceId": "form"}},
                "mediaType": "application/json+a2ui",
            }
        ),
        "",
        ["A2UI at message.parts[0].data: userAction form submit"],
    ),
    "a2ui capabilities": (
        request(
            {"text": "hello"},
            metadata={
                "a2uiClientCapabilities": {
                    "v0.9": {"supportedCatalogIds": ["x", "y"], "inlineCatalogs": [{}]}
                },
                "a2uiClientDataModel": {"version": "v0.9", "surfaces": {"main": {"name": "x"}}},
            },
        ),
        "",
        [
            "A2UI at message.metadata: capabilities v0.9: 2 catalogs and inline ones",
            "A2UI at message.metadata: data model of 1 surface",
        ],
    ),
    "a2ui 0.8 capabilities": (
        request(
            {"text": "hello"}, metadata={"a2uiClientCapabilities": {"supportedCatalogIds": ["x"]}}
        ),
        "",
        ["A2UI at message.metadata: capabilities: 1 catalog"],
    ),
    "a2ui card": (
        card(A2UI_URI, supportedCatalogIds=["x"], acceptsInlineCatalogs=True),
        "",
        ["A2UI at capabilities.extensions[0]: 1 catalog and inline ones"],
    ),
    "ap2 intent": (
        request(
            {
                "data": {
                    "ap2.mandates.IntentMandate": {
                        "user_cart_confirmation_required": False,
                        "natural_language_description": "cool red shoes",
                        "intent_expiry": "2026-12-01T00:00:00Z",
                    },
                    "risk_data": "abcd",
                }
            }
        ),
        "",
        [
            (
                'AP2 at message.parts[0].data: intent mandate, "cool red shoes", until '
                "2026-12-01T00:00:00Z, "
                "without confirmation of the cart"
            ),
            "AP2 at message.parts[0].data: risk data of 4 characters",
        ],
    ),
    "ap2 cart": (
        artifact({"data": {"ap2.mandates.CartMandate": CART}}),
        "",
        [f"AP2 at {_PART}: cart mandate, cart_1, 1 item, 120.0 USD, signed by the merchant"],
    ),
    "ap2 payment": (
        request({"data": {"ap2.mandates.PaymentMandate": PAYMENT}}),
        "",
        ["AP2 at message.parts[0].data: payment mandate, pm_1, 12.5 EUR, authorized by the user"],
    ),
    "ap2 payment as documented": (
        request(
            {
                "data": {
                    "ap2.mandates.PaymentMandate": {
                        "payment_details": {
                            "payment_request_id": "order_1",
                            "amount": {"currency": "USD", "value": 120.0},
                        }
                    }
                }
            }
        ),
        "",
        ["AP2 at message.parts[0].data: payment mandate, order_1, 120.0 USD"],
    ),
    "ap2 0.2": (
        request({"data": {"ap2.mandates.CheckoutMandateSdJwt": "eyJ~x~"}}),
        "",
        ["AP2 at message.parts[0].data: checkout mandate of 6 characters"],
    ),
    "ap2 receipt": (
        {
            "task": {
                "id": "t",
                "artifacts": [
                    {
                        "artifactId": "r",
                        "parts": [
                            {
                                "data": {
                                    "ap2.PaymentReceipt": {
                                        "payment_id": "pay_1",
                                        "amount": {"currency": "USD", "value": 120},
                                        "payment_status": {
                                            "success": {"merchant_confirmation_id": "x"}
                                        },
                                    }
                                }
                            }
                        ],
                    }
                ],
            }
        },
        "",
        ["AP2 at task.artifacts[0].parts[0].data: payment receipt, pay_1, 120 USD, success"],
    ),
    "ap2 card": (
        card(
            "https://github.com/google-agentic-commerce/ap2/tree/v0.1",
            roles=["merchant", "shopper"],
        ),
        "",
        ["AP2 at capabilities.extensions[0]: roles merchant, shopper"],
    ),
    "latency": (
        status({"data": {"latency": 3275}}, metadata={"toolName": "getMovie"}),
        LATENCY_URI,
        ["latency at statusUpdate.status.message.parts[0].data: 3275 ms expected for getMovie"],
    ),
    "latency of an object that names the extension": (
        status({"data": {"latency": 20}}, extensions=[LATENCY_URI]),
        "",
        ["latency at statusUpdate.status.message.parts[0].data: 20 ms expected"],
    ),
    "latency card": (
        card(LATENCY_URI, skillLatency={"minLatency": 200, "p95Latency": 3000}),
        "",
        ["latency at capabilities.extensions[0]: min 200 ms, p95 3000 ms"],
    ),
    "latency card by skills": (
        card(LATENCY_URI, skillLatency={"getMovie": {"minLatency": 1}}),
        "",
        ["latency at capabilities.extensions[0]: getMovie"],
    ),
    "passport": (
        request(
            {"text": "book"},
            metadata={
                PASSPORT_URI: {
                    "agentId": "a2a://orchestrator",
                    "signature": "MOCK-SIG",
                    "state": {"currency": "GBP", "tier": "Gold"},
                }
            },
        ),
        "",
        [
            (
                "secure passport at message.metadata: "
                "of a2a://orchestrator, shares currency, tier, signed"
            )
        ],
    ),
    "passport card": (
        card(PASSPORT_URI, receivesCallerContext=True, supportedStateKeys=["tier"]),
        "",
        ["secure passport at capabilities.extensions[0]: reads tier"],
    ),
    "timestamp": (
        artifact(
            {"text": "x"}, metadata={f"{SAMPLES}/timestamp/v1/timestamp": "2026-11-23T10:00:00Z"}
        ),
        "",
        ["timestamp at artifactUpdate.artifact.metadata: 2026-11-23T10:00:00Z"],
    ),
    "timestamp elsewhere": (
        request(
            {"text": "x"},
            metadata={f"{SAMPLES}/timestamp/v1/timestamp": "2026-11-23T10:00:00+02:00"},
        ),
        "",
        ["timestamp at message.metadata: 2026-11-23T10:00:00+02:00, not in UTC"],
    ),
    "trace": (
        {
            "message": {
                "messageId": "m",
                "role": "ROLE_AGENT",
                "metadata": {f"{TRACE_URI}/traceability": STEPS},
            }
        },
        "",
        ["traceability at message.metadata: 2 steps: search, planner"],
    ),
    "trace under the key that its specification names": (
        artifact({"text": "x"}, metadata={f"{SAMPLES}/timestamp/v1/timestamp": STEPS}),
        "",
        ["traceability at artifactUpdate.artifact.metadata: 2 steps: search, planner"],
    ),
    "trace as an artifact": (
        artifact({"data": STEPS}),
        TRACE_URI,
        ["traceability at artifactUpdate.artifact.parts[0].data: 2 steps: search, planner"],
    ),
}
"""Name -> a payload, the extensions that its call requested, and the uses that are found."""
