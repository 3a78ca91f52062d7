"""Webhooks at their place on a task's timeline, sent to the URL that the client registers now."""

from typing import Any

import msgspec

from a2a_proxy.replay.core.matching import requested_task
from a2a_proxy.replay.core.script import (
    LineKind,
    PlayerRequest,
    PlayerSend,
    RecordedCall,
    RecordedPush,
    ReplayScript,
    ScriptLine,
)
from a2a_proxy.replay.core.timeline import Timeline

_INLINE_CONFIG = "taskPushNotificationConfig"


class RegisteredWebhook(msgspec.Struct, frozen=True):
    """A client's push configuration."""

    task: str
    """Recorded task id."""
    recorded: Any
    """The matching configuration of the recording."""
    now: Any


class WebhookSchedule:
    """The registered webhooks and those that are still to be posted."""

    def __init__(self, script: ReplayScript, timeline: Timeline) -> None:
        self._pending_pushes = list(script.pushes)
        self._timeline = timeline
        self._registered: list[RegisteredWebhook] = []
        self._last_sent_of_task: dict[str, int] = {}
        """By task: when a line about it was sent last, in ns."""

    def on_request(self, call: RecordedCall, request: PlayerRequest) -> None:
        """Handle a request that may register or delete a webhook."""
        if not isinstance(request.value, dict):
            return
        if call.operation == "CreateTaskPushNotificationConfig":
            self._registered.append(
                RegisteredWebhook(requested_task(call.request), call.request, request.value)
            )
        elif call.operation == "DeleteTaskPushNotificationConfig":
            task, identifier = requested_task(call.request), request.value.get("id")
            self._registered = [
                each
                for each in self._registered
                if not (each.task == task and identifier in (None, each.now.get("id")))
            ]
        elif isinstance(now := _inline_config(request.value), dict):
            self._registered.append(
                RegisteredWebhook(
                    call.task or requested_task(call.request), _inline_config(call.request), now
                )
            )

    def on_line_sent(self, line: ScriptLine, at: int) -> None:
        """Note that a line about a task was sent."""
        if line.task:
            self._last_sent_of_task[line.task] = at

    def take_due(self, at: int, pause: Any) -> list[PlayerSend]:
        """Return the webhooks to post now; `pause` maps a recorded pause in ns to the one to
        wait."""
        found: list[PlayerSend] = []
        for push in list(self._pending_pushes):
            when = self._due_time(push, pause)
            if when is not None and when <= at:
                self._pending_pushes.remove(push)
                found.append(self._make_send(push))
        return found

    def wake_time(self, pause: Any) -> int | None:
        """Return when the next webhook is due in ns, as far as is known."""
        return min(
            (
                when
                for push in self._pending_pushes
                if (when := self._due_time(push, pause)) is not None
            ),
            default=None,
        )

    def _due_time(self, push: RecordedPush, pause: Any) -> int | None:
        """Return when a webhook is due; None until its task has progressed and a client has
        registered for it."""
        if not any(each.task == push.task for each in self._registered):
            return None
        before = self._timeline.last_event_before(push.task, push.at)
        if before is None:
            return 0
        if self._timeline.sent_count(push.task) <= before[0]:
            return None
        due: int = self._last_sent_of_task.get(push.task, 0) + pause(max(push.at - before[1], 0))
        return due

    def _make_send(self, push: RecordedPush) -> PlayerSend:
        mine = [each for each in self._registered if each.task == push.task]
        found = next(
            (
                each
                for each in mine
                if _path_of_url(_url_of_config(each.recorded)) == _path_of_url(push.url)
            ),
            mine[0],
        )
        return PlayerSend(
            what=LineKind.PUSH,
            value=push.value,
            url=_url_of_config(found.now),
            config=found.now,
            push=push,
        )


def _inline_config(request: Any) -> Any:
    configuration = request.get("configuration") if isinstance(request, dict) else None
    return configuration.get(_INLINE_CONFIG) if isinstance(configuration, dict) else None


def _url_of_config(config: Any) -> str:
    found = config.get("url") if isinstance(config, dict) else None
    return found if isinstance(found, str) else ""


def _path_of_url(url: str) -> str:
    return url.partition("//")[2].partition("/")[2] if "//" in url else url.partition("/")[2]
