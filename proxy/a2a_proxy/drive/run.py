"""The drive itself: every recorded call is made again, each message when what it waited for has come. Never hangs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from a2a_proxy.drive.call import CallError, CallTransport, OpenCall, ReceivedMessage
from a2a_proxy.drive.ids import DriveIds
from a2a_proxy.drive.plan import ENDED, AwaitedResponse, ClientAction, ClientTurn, DrivePlan, PlannedCall
from a2a_proxy.drive.progress import DriveProgress
from a2a_proxy.drive.request import Credentials, DriveRequest, make
from a2a_proxy.drive.target import RequestedTarget
from a2a_proxy.drive.translate import translate
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.protocol.canonical_form import canonical
from a2a_proxy.protocol.event import normalise, typed
from a2a_proxy.protocol.summary import state_number

_SECOND = 1_000_000_000
_PATIENCE = 5.0
"""Seconds of silence after which a message is sent although not all has come that it waited for."""
_LONGEST_CUT = 10.0
"""Seconds that a recorded client's patience before a cancel is kept for, whatever the speed."""


class DriveOptions(msgspec.Struct, frozen=True):
    """How a recording is driven."""

    speed: float = 0.0
    """Recorded pauses are divided by it; 0: there are none."""
    wanted: RequestedTarget = RequestedTarget()
    timeout: float = 30.0
    """Seconds of silence after which a call is given up, beyond those of the recorded one."""
    credentials: Credentials = Credentials()


class DriveRemark(msgspec.Struct, frozen=True):
    """What did not go as recorded, beyond what a comparison shows."""

    place: str
    operation: str
    said: str


class Drive:
    """One drive of one plan."""

    def __init__(
        self, plan: DrivePlan, wires: Mapping[Binding, CallTransport], manner: DriveOptions, ids: DriveIds | None = None
    ) -> None:
        self._plan = plan
        self._wires = wires
        self._manner = manner
        self._ids = ids or DriveIds()
        self._progress = DriveProgress(len(plan.steps))
        self._recorded: dict[int, list[Any]] = {}
        self.remarks: list[DriveRemark] = []
        self.skipped: set[int] = set()
        """Numbers of steps that were not made."""

    async def run(self) -> None:
        """Make all calls; returns when the last one is over."""
        for step in self._plan.steps:
            self._take_in(step)
        calls: list[asyncio.Task[None]] = []
        try:
            for step in self._plan.steps:
                await self._gate(step, step.turns[0], first=True)
                calls.append(asyncio.ensure_future(self._call(step)))
                await asyncio.sleep(0)
            await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    def _take_in(self, step: PlannedCall) -> None:
        """Tell the map of identifiers what the recording holds, in recorded order."""
        for turn in step.turns:
            if turn.frame is not None:
                self._ids.recorded_request(canonical(turn.frame, step.exchange))
        for frame in step.answers:
            self._ids.recorded_answer(canonical(frame, step.exchange))

    def _remark(self, step: PlannedCall, said: str) -> None:
        self.remarks.append(DriveRemark(step.place, step.exchange.operation or step.exchange.method, said))

    # --- gates ------------------------------------------------------------------------------------------------------

    async def _gate(self, step: PlannedCall, turn: ClientTurn, *, first: bool = False) -> None:
        """Wait for what a turn waited for in the recording, then for as long as it did after that."""
        waits = turn.waits if first else (*turn.waits, AwaitedResponse(step.number, turn.heard))
        for wait in waits:
            if not await self._progress.until(partial(self._progress.has, wait), self._patience(wait)):
                place = self._plan.steps[wait.step].place
                came = self._progress.of(wait.step).heard
                self._remark(
                    step, f"sent although {place} had brought {came} of {wait.answers} messages: it was silent"
                )
        pause = turn.pause / _SECOND
        if turn.act is ClientAction.CUT:
            await asyncio.sleep(min(pause, _LONGEST_CUT) if not self._manner.speed else pause / self._manner.speed)
        elif self._manner.speed and pause:
            await asyncio.sleep(pause / self._manner.speed)

    def _patience(self, wait: AwaitedResponse) -> Callable[[], float] | None:
        """Until when a turn waits; for ever where it waits for an end, for every call has one."""
        if wait.answers == ENDED:
            return None
        stand = self._progress.of(wait.step)
        silence = min(_PATIENCE, self._manner.timeout / 2) + self._plan.steps[wait.step].silence / _SECOND
        began = asyncio.get_running_loop().time()
        return lambda: max(stand.moved, began) + silence

    # --- one call ---------------------------------------------------------------------------------------------------

    async def _call(self, step: PlannedCall) -> None:
        stand = self._progress.of(step.number)
        try:
            unknown = self._unknown(step)
            if unknown:
                self._remark(step, f"not sent: the agent gave nothing that stands for {unknown}")
                self.skipped.add(step.number)
                return
            speech = self._manner.wanted.of(step)
            line = self._wires[speech.binding].line(step, speech)
            await self._talk(step, line)
        except CallError as wrong:
            self._remark(step, str(wrong))
        finally:
            stand.over = True
            self._progress.changed(step.number)

    def _unknown(self, step: PlannedCall) -> str:
        """An identifier that the first message needs and nobody has given; empty where there is none."""
        frame = step.turns[0].frame
        return next(iter(self._ids.unknown(canonical(frame, step.exchange))), "") if frame is not None else ""

    async def _talk(self, step: PlannedCall, line: OpenCall) -> None:
        reader: asyncio.Task[None] | None = None
        try:
            for number, turn in enumerate(step.turns):
                if number:
                    await self._gate(step, turn)
                if reader is not None and reader.done():
                    self._unsaid(step, step.turns[number:])
                    break
                if turn.act is ClientAction.SAY:
                    await self._say(step, turn, line)
                    self._progress.of(step.number).interrupted = False
                elif turn.act is ClientAction.END:
                    await line.end()
                else:
                    await line.cancel()
                    return
                self._progress.changed(step.number)
                reader = reader or asyncio.ensure_future(self._listen(step, line))
            if reader is not None:
                await self._let_end(step, line, reader)
        finally:
            if reader is not None:
                reader.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reader

    async def _say(self, step: PlannedCall, turn: ClientTurn, line: OpenCall) -> None:
        """Raises LineError where nobody takes the message."""
        try:
            async with asyncio.timeout(self._manner.timeout):
                await line.say(self._request(step, turn))
        except TimeoutError:
            await line.cancel()
            raise CallError(f"the agent took nothing for {self._manner.timeout:.3g} s: given up (--timeout)") from None

    def _request(self, step: PlannedCall, turn: ClientTurn) -> DriveRequest:
        """What is sent for a message. Raises LineError where another binding or dialect cannot say it."""
        speech, credentials = self._manner.wanted.of(step), self._manner.credentials
        if not speech.translated:
            return make(step, turn, self._ids, credentials)
        assert turn.frame is not None
        value = self._ids.json(canonical(turn.frame, step.exchange))
        headers, _ = credentials.apply(step.exchange.request_headers)
        return translate(value, speech, headers, step.number + 1)

    def _unsaid(self, step: PlannedCall, turns: tuple[ClientTurn, ...]) -> None:
        """The agent ended the call while the recorded client still had something to say."""
        left = sum(turn.act is ClientAction.SAY for turn in turns)
        if left:
            self._remark(step, f"the agent ended the call before {left} of the client's messages could be sent")

    async def _let_end(self, step: PlannedCall, line: OpenCall, reader: asyncio.Task[None]) -> None:
        """Wait for the end of the call, and give it up where nothing comes for too long."""
        stand = self._progress.of(step.number)
        silence = self._manner.timeout + step.silence / _SECOND
        if await self._progress.until(reader.done, lambda: stand.moved + silence):
            await reader
            return
        self._remark(step, f"nothing came for {silence:.3g} s: given up (--timeout)")
        await line.cancel()

    async def _listen(self, step: PlannedCall, line: OpenCall) -> None:
        """Take in what the agent says, until it has said all."""
        try:
            async for heard in line.answers():
                self._heard(step, heard)
        finally:
            # The reader's task is done only after this: those who wait look again then.
            asyncio.get_running_loop().call_soon(self._progress.changed, step.number)

    def _heard(self, step: PlannedCall, heard: ReceivedMessage) -> None:
        stand = self._progress.of(step.number)
        exchange = step.exchange
        if exchange.operation:
            dialect = self._manner.wanted.of(step).dialect
            value = normalise(heard.payload, heard.schema, dialect, exchange.operation, heard.kind)
            if stand.heard < len(step.answers):
                self._ids.learn(canonical(step.answers[stand.heard], exchange), value)
            stand.interrupted = _interrupted(value)
        stand.heard += 1
        self._progress.changed(step.number)


def _interrupted(value: dict[str, Any]) -> bool:
    event = typed(value)
    status = event.status_update.status if event.status_update else event.task.status if event.task else None
    number = state_number(status.state) if status is not None else 0
    return number in TaskState._value2member_map_ and TaskState(number).interrupted
