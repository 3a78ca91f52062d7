"""Push configurations that are undeclared, unsafe, lost, or not deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutations.breaks_cap import without
from mutations.breaks_card import succeeded
from mutations.refuse import refuse
from support_mutations import Ex, Msg, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
V0_3 = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc")
HERE, AWAY = "http://127.0.0.1:9/hook", "https://client.example.com/hook"
CREATE, GET, LIST, DELETE = (
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
)


def rename(answer: Msg, before: str, after: str) -> None:
    """Change the URL of the webhook wherever it is named."""
    if before.encode() in answer.data:
        answer.put(_renamed(answer.value, before, after))


def _renamed(value: Any, before: str, after: str) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(item, before, after) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, before, after) for item in value]
    return after if value == before else value


def hooks_afar(talk: Talk) -> None:
    """The webhook is on a public host, with https."""
    for call in talk.exchanges:
        for each in (*call.requests, *call.answers):
            rename(each, HERE, AWAY)


def _silent(talk: Talk) -> None:
    """The agent does not return secrets."""
    for call in talk.exchanges:
        if call.operation in (CREATE, GET, LIST):
            for each in call.answers:
                each.edit(_hide)


def _hide(config: dict[str, Any]) -> None:
    for each in config.get("configs", [config]):
        each.pop("token", None)
        each.pop("authentication", None)


def pushes(talk: Talk) -> list[Ex]:
    """Return operations on push configurations that succeeded."""
    return [
        each for each in talk.exchanges if "PushNotification" in each.operation and succeeded(each)
    ]


@mutation(*SDK, *V0_3)
def push_notifications_are_not_declared(talk: Talk) -> Iterator[Want]:
    """They work although no card declares them."""
    without(talk, "pushNotifications")
    yield from (Want("A2A-PUSH-001", each, each.answers[0]) for each in pushes(talk))


@mutation(*SDK, *V0_3, prepare=hooks_afar)
def the_webhook_is_in_the_network_of_the_agent(talk: Talk) -> Iterator[Want]:
    """On the address from which machines fetch their credentials."""
    call = talk.first(CREATE)
    for each in (call.requests[0], call.answers[0]):
        rename(each, AWAY, "https://169.254.169.254/latest")
    yield Want("A2A-PUSH-002", call, call.requests[0])


@mutation(*SDK)
def a_configuration_is_created_without_an_id(talk: Talk) -> Iterator[Want]:
    """The configuration cannot be deleted."""
    call = talk.first(CREATE)
    call.answers[0].edit(lambda config: config.pop("id"))
    yield Want("A2A-PUSH-003", call, call.answers[0])


def _embedded(talk: Talk) -> None:
    """A message contains its push configuration."""
    _sent(talk).requests[0].edit(
        lambda asked: asked.setdefault("configuration", {}).update(
            taskPushNotificationConfig={"url": AWAY}
        )
    )


def _sent(talk: Talk) -> Ex:
    return next(
        each for each in talk.exchanges if each.operation in ("SendMessage", "SendStreamingMessage")
    )


@mutation(*SDK, "js-three-bindings", prepare=_embedded)
def a_configuration_with_a_message_names_a_task(talk: Talk) -> Iterator[Want]:
    """The task does not exist yet."""
    call = _sent(talk)
    call.requests[0].edit(
        lambda asked: asked["configuration"]["taskPushNotificationConfig"].update(taskId="t1")
    )
    yield Want("A2A-PUSH-004", call, call.requests[0])


@mutation(*SDK, prepare=_silent)
def the_token_is_shown_again(talk: Talk) -> Iterator[Want]:
    """In the answer to a later call."""
    call = talk.first(GET)
    call.answers[0].edit(lambda config: config.update(token="t0ken-of-hook-1234"))
    yield Want("A2A-PUSH-014", call, call.answers[0])


@mutation(*SDK, prepare=_silent)
def the_credentials_are_listed(talk: Talk) -> Iterator[Want]:
    """In the answer to a list call."""
    call = talk.first(LIST)
    shown = {"scheme": "Bearer", "credentials": "cr3dentials-of-hook"}
    call.answers[0].edit(lambda found: found["configs"][0].update(authentication=shown))
    yield Want("A2A-PUSH-014", call, call.answers[0])


@mutation(*SDK)
def the_second_delete_fails(talk: Talk) -> Iterator[Want]:
    """The operation must be idempotent."""
    call = talk.all(DELETE)[1]
    yield Want(
        "A2A-PUSH-015", call, refuse(call, "INTERNAL_ERROR", "there is no such configuration")
    )


@mutation(*SDK)
def the_list_lacks_a_configuration(talk: Talk) -> Iterator[Want]:
    """It was created, and not deleted."""
    call = talk.first(LIST)
    call.answers[0].edit(lambda found: found.update(configs=[]))
    yield Want("A2A-PUSH-016", call, call.answers[0])


@mutation(*SDK, prepare=_silent)
def the_list_has_what_was_deleted(talk: Talk) -> Iterator[Want]:
    """Notifications continue."""
    call = talk.all(LIST)[1]
    call.answers[0].put(talk.first(LIST).answers[0].value | _envelope(call))
    yield Want("A2A-PUSH-017", call, call.answers[0])


def _envelope(call: Ex) -> dict[str, Any]:
    value = call.answers[0].value
    return {"id": value["id"]} if "jsonrpc" in value else {}
