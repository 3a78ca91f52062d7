"""Which agent a call reaches: the upstream, a base path below it, or one agent at several
places."""

from __future__ import annotations

import msgspec
import pytest

from a2a_proxy.model.wire import Chunk
from a2a_proxy.protocol.session_facts import SessionContext, path_of
from support_conversation import FACTS, Grpc, Http, Player, Script, play, play_split
from support_observer import observe, opening, scripted
from support_pipe import Stdio

CARD = "/.well-known/agent-card.json"
MESSAGE = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}


def card(name: str, *urls: str) -> dict[str, object]:
    bindings = ("JSONRPC", "HTTP+JSON", "GRPC")
    interfaces = [
        {"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}
        for url, binding in zip(urls, bindings, strict=False)
    ]
    return {"name": name, "skills": [], "supportedInterfaces": interfaces}


def fetch(http: Http, target: str, shown: dict[str, object]) -> Http:
    return http.request(f"GET {target}").answer(shown)


def call(http: Http, path: str, task: str = "t-1") -> Http:
    """Add a JSON-RPC call that completes a task."""
    status = {"state": "TASK_STATE_COMPLETED"}
    http.call("SendMessage", MESSAGE, path=path, A2A_Version="1.0")
    return http.result({"task": {"id": task, "contextId": "c", "status": status}})


def agents(script: Script, shared: SessionContext | None = None) -> list[str]:
    return [each.agent for each in play(script, shared).exchanges]


def two_by_path(start: str = "") -> Http:
    http = Http()
    for name in ("alpha", "beta"):
        fetch(http, f"{start}/a2a/{name}{CARD}", card(name, f"http://agent:8000/a2a/{name}/"))
    for name in ("alpha", "beta", "alpha"):
        call(http, f"{start}/a2a/{name}/")
    return http


@pytest.mark.parametrize("start", ["", "http://agent:8000"])
def test_two_agents_of_one_origin_are_told_apart_by_path(start: str) -> None:
    """Also behind a forward proxy, whose request targets are absolute."""
    alpha, beta = "agent:8000/a2a/alpha", "agent:8000/a2a/beta"

    assert agents(two_by_path(start)) == [alpha, beta, alpha, beta, alpha]


def test_two_agents_of_one_origin_are_told_apart_by_the_query_of_their_cards() -> None:
    """The name has the interface's path, and not the query, which may be a secret."""
    http = Http()
    for name in ("x", "y"):
        fetch(http, f"{CARD}?assistant_id={name}", card(name, f"http://agent:8000/a2a/{name}"))
    call(call(http, "/a2a/x"), "/a2a/y").request(f"GET {CARD}?assistant_id=y").answer(
        b"", "304 Not Modified"
    )

    assert agents(http) == ["agent:8000/a2a/x", "agent:8000/a2a/y"] * 2 + ["agent:8000/a2a/y"]


def test_agents_without_a_card_are_named_by_the_path_of_their_calls() -> None:
    http = call(call(Http(), "/"), "/a2a/alpha/")
    http.request("POST /a2a/beta/message:send", MESSAGE).answer({})
    http.request("GET /v1/tasks/t-1").answer({"id": "t-1"})
    http.request("GET /docs").answer(b"text", content_type="text/plain")

    assert agents(http) == [
        "agent:8000",
        "agent:8000/a2a/alpha",
        "agent:8000/a2a/beta",
        "agent:8000",
        "agent:8000",
    ]


def test_an_agent_on_three_bindings_and_two_ports_is_one() -> None:
    """Its card is below the root, and names all of them; a tenant in the path is no base path."""
    shared = SessionContext()
    shown = card("a", "http://agent:8000/a2a/rpc", "http://agent:8000/a2a/rest", "agent:8001")
    http = call(fetch(Http(), CARD, shown), "/a2a/rpc")
    http.request("GET /a2a/rest/tasks/t-1").answer({"id": "t-1"})
    http.request("GET /a2a/rest/acme/tasks/t-1").answer({"id": "t-1"})
    assert agents(http, shared) == ["agent:8000"] * 4

    player = Player(shared, msgspec.structs.replace(FACTS, upstream="agent:8001"), 2)
    grpc = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/GetTask", a2a_version="1.0")
        .send(b"\x12\x03t-1")
        .trailers_only(5)
    )
    for number, (what, direction, data) in enumerate(grpc.steps):
        player.step(what, direction, data, number)
    assert [each.agent for each in player.conversation.pop_changed_exchanges()] == ["agent:8000"]


def test_grpc_at_the_origin_of_the_only_agent_is_that_agent() -> None:
    shared = SessionContext()
    agents(call(Http(), "/a2a/alpha"), shared)
    assert shared.agent_at("agent:8000", "") == "agent:8000/a2a/alpha"
    agents(call(Http(), "/a2a/beta"), shared)
    assert shared.agent_at("agent:8000", "") == "agent:8000"


def test_a_card_that_is_fetched_after_the_first_call_keeps_the_name() -> None:
    """Of the first place; its other places get that name from then on."""
    shown = card("a", "http://public.example/rpc", "http://public.example/rest")
    http = fetch(call(Http(), "/rpc"), CARD, shown)
    http.request("GET /rest/tasks/t-1").answer({"id": "t-1"})

    assert agents(http) == ["agent:8000/rpc"] * 3


def test_a_card_with_the_url_of_another_agent_is_not_that_agent() -> None:
    """A card that was copied with its URL; an equal card at another place is the same agent."""
    http = fetch(Http(), f"/a{CARD}", card("a", "http://agent:8000/a"))
    fetch(http, f"/b{CARD}", card("b", "http://agent:8000/a"))
    fetch(http, CARD, card("a", "http://agent:8000/a"))
    call(call(http, "/a"), "/b")

    assert agents(http) == [f"agent:8000/{name}" for name in ("a", "b", "a", "a", "b")]


def test_an_extended_card_adds_places() -> None:
    http = call(Http(), "/rpc").call("GetExtendedAgentCard", {}, path="/rpc", A2A_Version="1.0")
    http.result(card("a", "http://agent:8000/other"))

    assert agents(call(http, "/other")) == ["agent:8000/rpc"] * 3


def test_agents_are_the_same_after_a_restart() -> None:
    script = two_by_path()
    whole = play(script).exchanges

    for step, (_, _, data) in enumerate(script.steps):
        assert [
            each.agent for each in play_split(script, step, len(data) // 2, True).exchanges
        ] == [each.agent for each in whole]


def test_places_are_limited() -> None:
    """Calls at any number of paths, long paths and cards with many interfaces take bounded memory
    and time."""
    shared = SessionContext()
    for number in range(10_100):
        shared.agent_at("agent:8000", f"/{number}")
    assert shared.agent_at("agent:8000", "/9") == "agent:8000/9"
    assert shared.agent_at("agent:8000", "/10050") == "agent:8000"
    assert agents(fetch(Http(), f"/more{CARD}", card("a", "http://more:1/x")), shared) == [
        "agent:8000"
    ]
    assert len(shared.agent_at("other:1", "/x" * 40_000)) < 300


def test_paths_of_targets() -> None:
    targets = [
        "/",
        "/a/b/?c=d/e",
        "http://h:1",
        "http://h:1/a/?b",
        "http://h/a//",
        "*",
        "/a?b=http://c/",
    ]

    assert [path_of(each) for each in targets] == ["", "/a/b", "", "/a", "/a", "*", "/a"]


def test_two_agents_of_one_origin_have_tasks_and_findings_of_their_own() -> None:
    """With equal task ids in one context; the states of one are not those of the other, also after
    a restart."""
    seen = observe(scripted(two_by_path()))

    assert set(seen.tasks) == {("agent:8000/a2a/alpha", "t-1"), ("agent:8000/a2a/beta", "t-1")}
    assert [seen.tasks[key].exchanges for key in sorted(seen.tasks)] == [(3, 5), (4,)]
    again = observe(scripted(two_by_path()), restart_at=(5, 9, 11))
    assert (again.out, again.tasks, again.exchanges) == (seen.out, seen.tasks, seen.exchanges)


def deliveries(*names: str) -> list[Chunk]:
    """Both agents create task `t-1`, each with a webhook of its own; then those of these names
    deliver."""
    http = two_by_path()
    chunks = scripted(http)
    start = chunks[-1].at
    for name in ("alpha", "beta"):
        http = Http()
        config = {"taskId": "t-1", "id": "p", "url": f"http://agent:8000/hook/{name}"}
        create = "CreateTaskPushNotificationConfig"
        http.call(create, config, path=f"/a2a/{name}/", A2A_Version="1.0").result(config)
        chunks += scripted(http, len(chunks), start := start + 1_000_000)
    for name in names:
        status = {"taskId": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
        http = Http().request(f"POST /hook/{name}", {"statusUpdate": status}).answer()
        script = scripted(http, len(chunks), start := start + 1_000_000)
        chunks += [*opening(len(chunks), start, "hook:80"), *script[2:]]
    return chunks


def test_a_delivery_is_the_agent_s_that_has_its_url() -> None:
    """The task id alone is that of two agents."""
    seen = observe(deliveries("alpha", "beta", "alpha"))
    alpha, beta = "agent:8000/a2a/alpha", "agent:8000/a2a/beta"

    assert [seen.exchanges[number].agent for number in (8, 9, 10)] == [alpha, beta, alpha]
    assert seen.tasks[alpha, "t-1"].exchanges == (3, 5, 6, 8, 10)
    assert seen.tasks[beta, "t-1"].exchanges == (4, 7, 9)


def test_a_secret_in_a_base_path_is_redacted_everywhere_alike() -> None:
    secret = "sk-ant-api03-" + "Zx9" * 20
    seen = observe(scripted(call(Http(), f"/{secret}")))
    (exchange,), ((agent, _),) = seen.exchanges.values(), seen.tasks

    assert secret not in agent
    assert exchange.agent == agent


def test_a_stdio_agent_is_its_command() -> None:
    """Two commands are two agents, whatever their words look like."""
    commands = ("python /a2a/alpha.py", "python /a2a/beta.py")
    seen = [observe(Stdio(command).call("GetTask", {"id": "t-1"}).chunks) for command in commands]

    assert [each.exchanges[1].agent for each in seen] == list(commands)
