"""The drive itself: repeats every recorded call, each message once its dependencies are met. Never
hangs.

Progress of the calls of a drive, and waiting for it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from a2a_proxy.drive.ids import DriveIds
from a2a_proxy.drive.plan import (
    CALL_END,
    AwaitedResponse,
    ClientAction,
    ClientTurn,
    DrivePlan,
    PlannedCall,
)
from a2a_proxy.drive.request import (
    CallError,
    CallTransport,
    Credentials,
    DriveRequest,
    OpenCall,
    ReceivedMessage,
    RequestedTarget,
    make_request,
    make_text_turn,
    translate_request,
)
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.canonical_form import canonical_payload
from a2a_proxy.protocol.event import event_from_json, normalise_event
from a2a_proxy.protocol.summary import state_number

_NS_PER_SECOND = 1_000_000_000
_PATIENCE_SECONDS = 5.0
"""Seconds of silence after which a message is sent even if its dependencies are not met."""
_MAX_CANCEL_SECONDS = 10.0
"""Maximum number of seconds that a recorded client's pause before a cancel is kept, whatever the
speed."""


class CallProgress(msgspec.Struct):
    """Progress of one call."""

    answer_count: int = 0
    """Number of messages of the live agent."""
    is_over: bool = False
    is_interrupted: bool = False
    """Whether the last message of the agent says that it waits for its client."""
    last_change: float = 0.0
    """Time of the last message in either direction, in seconds of the event loop's clock."""


class DriveProgress:
    """Progress of all calls."""

    def __init__(self, steps: int) -> None:
        self._calls = [CallProgress() for _ in range(steps)]
        self._change_event = asyncio.Event()

    def progress_of(self, step: int) -> CallProgress:
        """Return the progress of one call."""
        return self._calls[step]

    def notify_change(self, step: int) -> None:
        """Note a change of a call and wake the waiters."""
        self._calls[step].last_change = asyncio.get_running_loop().time()
        self._change_event.set()
        self._change_event = asyncio.Event()

    def has_answer(self, wait: AwaitedResponse) -> bool:
        """Whether an answer has been received, or cannot be because the call is over or its agent
        waits for the client."""
        progress = self._calls[wait.step]
        if progress.is_over:
            return True
        return wait.answers != CALL_END and (
            progress.answer_count >= wait.answers or progress.is_interrupted
        )

    async def wait_until(
        self, condition: Callable[[], bool], deadline: Callable[[], float] | None = None
    ) -> bool:
        """Wait until `condition` is true; return False if `deadline`, in seconds of the loop's
        clock, passes before."""
        loop = asyncio.get_running_loop()
        while not condition():
            remaining = deadline() - loop.time() if deadline is not None else None
            if remaining is not None and remaining <= 0:
                return False
            pulse = self._change_event
            try:
                async with asyncio.timeout(remaining):
                    await pulse.wait()
            except TimeoutError:
                continue
        return True


class DriveOptions(msgspec.Struct, frozen=True):
    """How a recording is driven."""

    speed: float = 0.0
    """Factor by which recorded pauses are divided; 0: no pauses."""
    target: RequestedTarget = RequestedTarget()
    timeout: float = 30.0
    """Seconds of silence, beyond the recorded silence, after which a call is given up."""
    credentials: Credentials = Credentials()
    on_answer: Callable[[ReceivedMessage], None] | None = None
    """Called with each message of the agent at its arrival."""
    texts: asyncio.Queue[str | None] | None = None
    """Texts of further messages of a live call, sent after the recorded ones; None is the last
    item."""


class DriveRemark(msgspec.Struct, frozen=True):
    """A deviation from the recording that a comparison does not show."""

    place: str
    operation: str
    text: str


class Drive:
    """One run of one plan."""

    def __init__(
        self,
        plan: DrivePlan,
        transports: Mapping[Binding, CallTransport],
        options: DriveOptions,
        ids: DriveIds | None = None,
    ) -> None:
        self._plan = plan
        self._transports = transports
        self._options = options
        self._ids = ids or DriveIds()
        self._progress = DriveProgress(len(plan.steps))
        self.remarks: list[DriveRemark] = []
        self.skipped: set[int] = set()
        """Numbers of the steps that were not made."""
        self._last_event: dict[str, Any] = {}
        """The newest message of the agent in the 1.0 form."""

    async def run(self) -> None:
        """Make all calls; returns when the last one is over."""
        for step in self._plan.steps:
            # Register the identifiers of a call, in recorded order: later messages of a stream name
            # what it answered.
            loaded = 0
            for turn in step.turns:
                for frame in step.answers[loaded : turn.answers_before]:
                    self._ids.add_answer(canonical_payload(frame, step.exchange))
                loaded = max(loaded, turn.answers_before)
                if turn.frame is not None:
                    self._ids.add_request(canonical_payload(turn.frame, step.exchange))
            for frame in step.answers[loaded:]:
                self._ids.add_answer(canonical_payload(frame, step.exchange))
        calls: list[asyncio.Task[None]] = []
        try:
            for step in self._plan.steps:
                await self._wait_for_turn(step, step.turns[0], first=True)
                calls.append(asyncio.ensure_future(self._make_call(step)))
                await asyncio.sleep(0)
            await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    def _add_remark(self, step: PlannedCall, text: str) -> None:
        self.remarks.append(
            DriveRemark(step.place, step.exchange.operation or step.exchange.method, text)
        )

    # --- gates

    async def _wait_for_turn(
        self, step: PlannedCall, turn: ClientTurn, *, first: bool = False
    ) -> None:
        """Wait for the dependencies of a turn, then for its recorded pause."""
        waits = (
            turn.waits
            if first
            else (*turn.waits, AwaitedResponse(step.number, turn.answers_before))
        )
        for wait in waits:
            if not await self._progress.wait_until(
                partial(self._progress.has_answer, wait), self._turn_deadline(wait)
            ):
                place = self._plan.steps[wait.step].place
                count = self._progress.progress_of(wait.step).answer_count
                self._add_remark(
                    step,
                    f"sent although {place} had brought {count} of {wait.answers} messages: the "
                    f"agent was silent",
                )
        pause = turn.pause / _NS_PER_SECOND
        if turn.action is ClientAction.CUT:
            await asyncio.sleep(
                min(pause, _MAX_CANCEL_SECONDS)
                if not self._options.speed
                else pause / self._options.speed
            )
        elif self._options.speed and pause:
            await asyncio.sleep(pause / self._options.speed)

    def _turn_deadline(self, wait: AwaitedResponse) -> Callable[[], float] | None:
        """Return until when a turn waits for an answer; None if it waits for the end of a call,
        which always comes."""
        if wait.answers == CALL_END:
            return None
        progress = self._progress.progress_of(wait.step)
        silence = (
            min(_PATIENCE_SECONDS, self._options.timeout / 2)
            + self._plan.steps[wait.step].silence / _NS_PER_SECOND
        )
        began = asyncio.get_running_loop().time()
        return lambda: max(progress.last_change, began) + silence

    # --- one call

    async def _make_call(self, step: PlannedCall) -> None:
        progress = self._progress.progress_of(step.number)
        try:
            # An identifier that the first message needs and the agent has not returned; empty if
            # there is none.
            frame = step.turns[0].frame
            unknown = (
                next(iter(self._ids.unknown_ids(canonical_payload(frame, step.exchange))), "")
                if frame is not None
                else ""
            )
            if unknown:
                self._add_remark(step, f"not sent: the agent returned no id in place of {unknown}")
                self.skipped.add(step.number)
                return
            target = self._options.target.target_of(step)
            call = self._transports[target.binding].open_call(step, target)
            await self._take_turns(step, call)
        except CallError as wrong:
            self._add_remark(step, str(wrong))
        finally:
            progress.is_over = True
            self._progress.notify_change(step.number)

    async def _take_turns(self, step: PlannedCall, call: OpenCall) -> None:
        reader: asyncio.Task[None] | None = None
        try:
            for number, turn in enumerate(step.turns):
                if number:
                    await self._wait_for_turn(step, turn)
                if reader is not None and reader.done():
                    self._remark_unsent(step, step.turns[number:])
                    break
                if turn.action is not ClientAction.SAY and reader is not None:
                    await self._send_texts(step, call, reader)
                if turn.action is ClientAction.SAY:
                    await self._send_message(step, turn, call)
                    self._progress.progress_of(step.number).is_interrupted = False
                elif turn.action is ClientAction.END:
                    await call.half_close()
                else:
                    await call.cancel()
                    return
                self._progress.notify_change(step.number)
                reader = reader or asyncio.ensure_future(self._read_answers(step, call))
            if reader is not None:
                if await self._send_texts(step, call, reader):
                    await call.half_close()
                await self._wait_for_end(step, call, reader)
        finally:
            if reader is not None:
                reader.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reader

    async def _send_texts(
        self, step: PlannedCall, call: OpenCall, reader: asyncio.Task[None]
    ) -> bool:
        """Send the further messages of a live call until their end, or that of the call; return
        whether there were any."""
        texts, is_sent = self._options.texts, False
        while texts is not None and not reader.done():
            text = asyncio.ensure_future(texts.get())
            await asyncio.wait((text, reader), return_when=asyncio.FIRST_COMPLETED)
            if not text.done():
                text.cancel()
                break
            if (words := text.result()) is None:
                texts.put_nowait(None)
                break
            await self._send_message(step, make_text_turn(step, words, self._last_event), call)
            self._progress.notify_change(step.number)
            is_sent = True
        return is_sent

    async def _send_message(self, step: PlannedCall, turn: ClientTurn, call: OpenCall) -> None:
        """Send a message. Raises CallError if the agent does not accept it in time."""
        try:
            async with asyncio.timeout(self._options.timeout):
                await call.send_message(self._make_request(step, turn))
        except TimeoutError:
            await call.cancel()
            raise CallError(
                f"the agent accepted nothing for {self._options.timeout:.3g} s: given up "
                f"(--timeout)"
            ) from None

    def _make_request(self, step: PlannedCall, turn: ClientTurn) -> DriveRequest:
        """Return the request of a message. Raises CallError if another binding or dialect cannot
        express it."""
        target, credentials = self._options.target.target_of(step), self._options.credentials
        if not target.is_translated:
            return make_request(step, turn, self._ids, credentials)
        assert turn.frame is not None
        value = self._ids.rename_json(canonical_payload(turn.frame, step.exchange))
        headers, _ = credentials.apply_to(step.exchange.request_headers)
        return translate_request(value, target, headers, step.number + 1)

    def _remark_unsent(self, step: PlannedCall, turns: tuple[ClientTurn, ...]) -> None:
        """Remark that the agent ended the call before the client had sent all messages."""
        unsent = sum(turn.action is ClientAction.SAY for turn in turns)
        if unsent:
            self._add_remark(
                step,
                f"the agent ended the call before {unsent} of the client's messages could be sent",
            )

    async def _wait_for_end(
        self, step: PlannedCall, call: OpenCall, reader: asyncio.Task[None]
    ) -> None:
        """Wait for the end of the call, and give it up if nothing is received for too long."""
        progress = self._progress.progress_of(step.number)
        silence = self._options.timeout + step.silence / _NS_PER_SECOND
        if await self._progress.wait_until(reader.done, lambda: progress.last_change + silence):
            await reader
            return
        self._add_remark(step, f"the agent sent nothing for {silence:.3g} s: given up (--timeout)")
        await call.cancel()

    async def _read_answers(self, step: PlannedCall, call: OpenCall) -> None:
        """Process the agent's messages until the call ends."""
        try:
            async for message in call.iter_answers():
                self._on_answer(step, message)
        finally:
            # The reader's task is done only after this block, and then the waiters check it.
            asyncio.get_running_loop().call_soon(self._progress.notify_change, step.number)

    def _on_answer(self, step: PlannedCall, message: ReceivedMessage) -> None:
        progress = self._progress.progress_of(step.number)
        exchange = step.exchange
        if exchange.operation:
            dialect = self._options.target.target_of(step).dialect
            value = normalise_event(
                message.payload, message.schema, dialect, exchange.operation, message.kind
            )
            if progress.answer_count < len(step.answers):
                self._ids.learn_answer(
                    canonical_payload(step.answers[progress.answer_count], exchange), value
                )
            event = event_from_json(value)
            status = (
                event.status_update.status
                if event.status_update
                else event.task.status
                if event.task
                else None
            )
            number = state_number(status.state) if status is not None else 0
            progress.is_interrupted = (
                number in TaskState._value2member_map_ and TaskState(number).interrupted
            )
            self._last_event = value
        if self._options.on_answer is not None:
            self._options.on_answer(message)
        progress.answer_count += 1
        self._progress.notify_change(step.number)
