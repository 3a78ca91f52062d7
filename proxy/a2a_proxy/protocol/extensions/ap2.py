"""AP2, the Agent Payments Protocol: mandates for a purchase, and receipts. Signatures and tokens
are never shown."""

import re
from typing import Any

from a2a_proxy.protocol.extensions.extension import Extension, ExtensionPayload, Place
from a2a_proxy.protocol.extensions.members import (
    count,
    list_member,
    list_names,
    malformed,
    object_member,
    quote,
    text_member,
)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _summarise(payload: ExtensionPayload) -> str | None:
    if payload.place is Place.CARD:
        roles = [each for each in list_member(payload.value, "roles") if isinstance(each, str)]
        return f"roles {list_names(roles)}" if roles else "no roles"
    if payload.place is Place.METADATA:
        return ""
    name = payload.key.rpartition(".")[2]
    title = " ".join(word.lower() for word in _WORD.findall(name.removesuffix("SdJwt")))
    if isinstance(payload.value, str):
        return f"{title} of {count(len(payload.value), 'character')}"
    if not isinstance(payload.value, dict):
        return malformed(f"the {title} is not an object")
    describe = _DESCRIPTIONS.get(name)
    details = describe(payload.value) if describe else []
    return ", ".join([title, *(each for each in details if each)])


def _describe_intent(value: dict[str, Any]) -> list[str]:
    asks = value.get("user_cart_confirmation_required")
    told = text_member(value, "natural_language_description")
    return [
        quote(told) if told else malformed("no description"),
        _until(text_member(value, "intent_expiry")),
        "" if asks is not False else "without confirmation of the cart",
    ]


def _describe_cart(value: dict[str, Any]) -> list[str]:
    contents = object_member(value, "contents")
    details = object_member(object_member(contents, "payment_request"), "details")
    signed = text_member(value, "merchant_signature", "merchant_authorization")
    return [
        text_member(contents, "id") or malformed("no id of the cart"),
        count(
            len(list_member(details, "displayItems") or list_member(details, "display_items")),
            "item",
        ),
        _amount(object_member(details, "total").get("amount")),
        "signed by the merchant" if signed else "not signed",
        _until(text_member(contents, "cart_expiry")),
    ]


def _describe_payment(value: dict[str, Any]) -> list[str]:
    contents = object_member(value, "payment_mandate_contents") or object_member(
        value, "payment_details"
    )
    total = object_member(contents, "payment_details_total").get("amount", contents.get("amount"))
    return [
        text_member(contents, "payment_mandate_id", "payment_details_id", "payment_request_id"),
        _amount(total) or malformed("no amount"),
        "authorized by the user" if text_member(value, "user_authorization") else "",
    ]


def _describe_receipt(value: dict[str, Any]) -> list[str]:
    status = value.get("payment_status")
    outcome = next(
        (name for name in ("success", "error", "failure") if object_member(status, name)), ""
    )
    found = text_member(value, "payment_id", "order_id", "checkout_id")
    return [
        found,
        _amount(value.get("amount")),
        outcome or text_member(value, "status", "payment_status").lower(),
    ]


_DESCRIPTIONS = {
    "IntentMandate": _describe_intent,
    "CartMandate": _describe_cart,
    "PaymentMandate": _describe_payment,
    "PaymentReceipt": _describe_receipt,
    "CheckoutReceipt": _describe_receipt,
}


def _amount(value: Any) -> str:
    """Return `120.0 USD`, or an empty string if it is not an amount."""
    number = value.get("value") if isinstance(value, dict) else None
    if isinstance(number, bool) or not isinstance(number, int | float | str):
        return ""
    return f"{number} {text_member(value, 'currency')}".rstrip()


def _until(time: str) -> str:
    return f"until {time}" if time else ""


AP2 = Extension(
    name="AP2",
    uris=(
        "https://github.com/google-agentic-commerce/ap2",
        "https://github.com/google-agentic-commerce/AP2",
    ),
    members=("ap2.", "risk_data"),
    summarise=_summarise,
)
