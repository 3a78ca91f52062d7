"""An exchange as it was at a moment, without later events. Pure."""

import msgspec
from msgspec.structs import replace

from a2a_proxy.model.values import Exchange


class ExchangeProgress(msgspec.Struct, frozen=True):
    """Progress of an exchange that was not over."""

    requests: int = 0
    events: int = 0
    states: tuple[str, ...] = ()
    last_event: int = 0
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    task: bool = False
    """Whether a frame had named its task."""
    context: bool = False


def is_exchange_over(exchange: Exchange, until: int) -> bool:
    """Return whether the exchange was over: no event follows `until`."""
    return bool(exchange.closed) and exchange.closed <= until


def exchange_as_of(exchange: Exchange, until: int, progress: ExchangeProgress) -> Exchange:
    """Return the exchange as it was at `until`, ns since the epoch; unchanged if it was over."""
    if is_exchange_over(exchange, until):
        return exchange
    is_answered = 0 < exchange.response_started <= until
    return replace(
        exchange,
        request_ended=_time_until(exchange.request_ended, until),
        response_started=_time_until(exchange.response_started, until),
        first_event=_time_until(exchange.first_event, until),
        last_event=progress.last_event,
        closed=0,
        how="",
        half_close="",
        status=exchange.status if is_answered else 0,
        grpc_status=-1,
        error_code=0,
        error="",
        response_headers=exchange.response_headers if is_answered else (),
        trailers=(),
        task_id=exchange.task_id if progress.task else "",
        context_id=exchange.context_id if progress.context else "",
        states=progress.states,
        requests=progress.requests,
        events=progress.events,
        bytes_to_agent=progress.bytes_to_agent,
        bytes_to_client=progress.bytes_to_client,
        generation=0,
    )


def _time_until(at: int, until: int) -> int:
    return at if at <= until else 0
