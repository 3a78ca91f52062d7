"""Map REST paths to operations and ids: A2A 1.0 section 11.3, matched at the end of the path.

An interface URL may end in anything, also in `/v1`, and a tenant may precede the suffix, so only
the end of the path is matched; the part before it is returned as `prefix`.
"""

from urllib.parse import unquote_to_bytes

import msgspec

from a2a_proxy.protocol.operations import OPERATION_BY_NAME, Operation


class RestMatch(msgspec.Struct, frozen=True):
    """Operation, ids and query of a REST request line."""

    operation: Operation
    prefix: str = ""
    """Path before the suffix, without the closing slash; `/v1` marks the 0.3 form."""
    task_id: str = ""
    config_id: str = ""
    query: tuple[tuple[str, str], ...] = ()

    def get_parameter(self, name: str) -> str:
        """Return the first query parameter of this name, ignoring case, or an empty string."""
        return _first_parameter(self.query, name)


PATHS: dict[tuple[str, str], str] = {
    ("POST", "message:send"): "SendMessage",
    ("POST", "message:stream"): "SendStreamingMessage",
    ("POST", "message:live"): "SendLiveMessage",
    ("POST", "live"): "SendLiveMessage",
    ("GET", "tasks"): "ListTasks",
    ("GET", "extendedAgentCard"): "GetExtendedAgentCard",
    ("GET", "authenticatedExtendedCard"): "GetExtendedAgentCard",
}
"""(HTTP method, last path segment) -> operation."""

VERBS: dict[str, tuple[str, tuple[str, ...]]] = {
    "cancel": ("CancelTask", ("POST",)),
    "subscribe": ("SubscribeToTask", ("GET", "POST")),
    "reconnect": ("ReconnectToTask", ("POST",)),
}
"""Verb after the last colon of `tasks/{id}:verb` -> operation and HTTP methods."""

CONFIG_METHODS = {
    "GET": "GetTaskPushNotificationConfig",
    "DELETE": "DeleteTaskPushNotificationConfig",
}
"""HTTP method of `tasks/{id}/pushNotificationConfigs/{id}` -> operation."""
CONFIGS_METHODS = {
    "GET": "ListTaskPushNotificationConfigs",
    "POST": "CreateTaskPushNotificationConfig",
}
"""HTTP method of `tasks/{id}/pushNotificationConfigs` -> operation."""


def match_request_line(method: str, target: bytes) -> RestMatch | None:
    """Return the operation of a request line, or None if it is not an A2A operation.

    `target` is the request target as sent (origin or absolute form).
    """
    path, _, query = target.partition(b"?")
    segments = path.decode("latin-1").split("/")
    found = (
        _match_push_configs(method, segments)
        or _match_task(method, segments)
        or _match_last_segment(method, segments)
    )
    if found is None:
        return None
    name, keep, task_id, config_id = found
    return RestMatch(
        OPERATION_BY_NAME[name], "/".join(segments[:keep]), task_id, config_id, parse_query(query)
    )


def parse_query(query: bytes) -> tuple[tuple[str, str], ...]:
    """Split a query string; percent-escapes and `+` are undone, bytes that are not UTF-8 are
    replaced."""
    pairs = (pair.partition(b"=") for pair in query.partition(b"#")[0].split(b"&") if pair)
    return tuple(
        (unescape_percent(key.replace(b"+", b" ")), unescape_percent(value.replace(b"+", b" ")))
        for key, _, value in pairs
    )


def query_parameter(target: str, name: str) -> str:
    """Return the first query parameter of this name in a request target, ignoring case, or an empty
    string."""
    return _first_parameter(
        parse_query(target.partition("?")[2].encode("latin-1", "replace")), name
    )


def _first_parameter(query: tuple[tuple[str, str], ...], name: str) -> str:
    lower_name = name.lower()
    return next((value for key, value in query if key.lower() == lower_name), "")


def unescape_percent(data: bytes | str) -> str:
    """Undo the percent-escapes of a path segment or a query value."""
    return unquote_to_bytes(data).decode("utf-8", "replace")


_PathMatch = tuple[str, int, str, str]
"""Operation, number of prefix segments, task id, push configuration id."""


def _match_push_configs(method: str, segments: list[str]) -> _PathMatch | None:
    if len(segments) >= 4 and segments[-2] == "pushNotificationConfigs" and segments[-4] == "tasks":
        name = CONFIG_METHODS.get(method)
        # The last segment may be empty: `.../pushNotificationConfigs/` is the list with a stray
        # slash.
        if name and segments[-1]:
            return (
                name,
                len(segments) - 4,
                unescape_percent(segments[-3]),
                unescape_percent(segments[-1]),
            )
    if len(segments) >= 3 and segments[-1] == "pushNotificationConfigs" and segments[-3] == "tasks":
        name = CONFIGS_METHODS.get(method)
        if name:
            return name, len(segments) - 3, unescape_percent(segments[-2]), ""
    return None


def _match_task(method: str, segments: list[str]) -> _PathMatch | None:
    if len(segments) < 2 or segments[-2] != "tasks" or not segments[-1]:
        return None
    last = segments[-1]
    identifier, colon, verb = last.rpartition(":")
    if colon and verb in VERBS and method in VERBS[verb][1]:
        return VERBS[verb][0], len(segments) - 2, unescape_percent(identifier), ""
    # A colon that is percent-encoded, or followed by another word, belongs to the id.
    return ("GetTask", len(segments) - 2, unescape_percent(last), "") if method == "GET" else None


def _match_last_segment(method: str, segments: list[str]) -> _PathMatch | None:
    last = segments[-1]
    keep = len(segments) - 1
    name = PATHS.get((method, unescape_percent(last) if "%" in last else last))
    if name is not None:
        if last == "authenticatedExtendedCard" and segments[-2:-1] != ["agent"]:
            return None
        return name, keep, "", ""
    # 0.3 only: /v1/card.
    return (
        ("GetExtendedAgentCard", keep, "", "")
        if (method, segments[-2:]) == ("GET", ["v1", "card"])
        else None
    )
