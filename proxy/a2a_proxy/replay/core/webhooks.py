"""Webhooks at their place on a task's timeline, to where the client wants them now."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.replay.core.matching import asked_task
from a2a_proxy.replay.core.player_io import PlayerRequest, Send
from a2a_proxy.replay.core.script import LineKind, Push, RecordedCall, ReplayScript, ScriptLine
from a2a_proxy.replay.core.timeline import Timeline

_INLINE = "taskPushNotificationConfig"


class RegisteredWebhook(msgspec.Struct, frozen=True):
    """A client's configuration."""

    task: str
    """Recorded id."""
    recorded: Any
    """The configuration that stands at its place in the recording."""
    now: Any


class WebhookSchedule:
    """What was registered, and what has been posted."""

    def __init__(self, script: ReplayScript, timeline: Timeline) -> None:
        self._rest = list(script.pushes)
        self._timeline = timeline
        self._registered: list[RegisteredWebhook] = []
        self._told: dict[str, int] = {}
        """By task: when something was told of it last, ns."""

    def asked(self, call: RecordedCall, asked: PlayerRequest) -> None:
        """A client's request may register a webhook, or take one away."""
        if not isinstance(asked.value, dict):
            return
        if call.operation == "CreateTaskPushNotificationConfig":
            self._registered.append(RegisteredWebhook(asked_task(call.request), call.request, asked.value))
        elif call.operation == "DeleteTaskPushNotificationConfig":
            task, identifier = asked_task(call.request), asked.value.get("id")
            self._registered = [
                each
                for each in self._registered
                if not (each.task == task and identifier in (None, each.now.get("id")))
            ]
        elif isinstance(now := _inline(asked.value), dict):
            self._registered.append(
                RegisteredWebhook(call.task or asked_task(call.request), _inline(call.request), now)
            )

    def told(self, line: ScriptLine, at: int) -> None:
        """Something was told of a task."""
        if line.task:
            self._told[line.task] = at

    def due(self, at: int, pause: Any) -> list[Send]:
        """What is to be posted now; `pause` makes of a recorded pause, ns, the one of now."""
        found: list[Send] = []
        for push in list(self._rest):
            when = self._when(push, pause)
            if when is not None and when <= at:
                self._rest.remove(push)
                found.append(self._send(push))
        return found

    def wake(self, pause: Any) -> int | None:
        """When the next one is due, as far as is known, ns."""
        return min((when for push in self._rest if (when := self._when(push, pause)) is not None), default=None)

    def _when(self, push: Push, pause: Any) -> int | None:
        """When a webhook is due; None: not before more has been told of its task, or somebody registers for it."""
        if not any(each.task == push.task for each in self._registered):
            return None
        before = self._timeline.before(push.task, push.at)
        if before is None:
            return 0
        if self._timeline.reached(push.task) <= before[0]:
            return None
        told: int = self._told.get(push.task, 0) + pause(max(push.at - before[1], 0))
        return told

    def _send(self, push: Push) -> Send:
        mine = [each for each in self._registered if each.task == push.task]
        found = next((each for each in mine if _path(_url(each.recorded)) == _path(push.url)), mine[0])
        return Send(what=LineKind.PUSH, value=push.value, url=_url(found.now), config=found.now, push=push)


def _inline(request: Any) -> Any:
    configuration = request.get("configuration") if isinstance(request, dict) else None
    return configuration.get(_INLINE) if isinstance(configuration, dict) else None


def _url(config: Any) -> str:
    found = config.get("url") if isinstance(config, dict) else None
    return found if isinstance(found, str) else ""


def _path(url: str) -> str:
    return url.partition("//")[2].partition("/")[2] if "//" in url else url.partition("/")[2]
