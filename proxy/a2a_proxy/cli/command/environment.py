"""Environment variables of the command, and the proxy that they named before."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from a2a_proxy.cli.authority import proxy_variables
from a2a_proxy.relay.host_patterns import HostPattern
from a2a_proxy.relay.route import RouteError
from a2a_proxy.relay.stdio_agent import agent_environment
from a2a_proxy.relay.upstream_proxy import UpstreamProxy

_FOUND_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_EXCEPTION_VARIABLES = ("NO_PROXY", "no_proxy")


class FoundProxy(msgspec.Struct, frozen=True):
    """A proxy that the environment names."""

    text: str
    """Variable and value without user information: `HTTPS_PROXY=http://proxy:3128`."""
    proxy: UpstreamProxy | None = None
    """None if upstreams cannot be dialled through it."""
    problems: tuple[str, ...] = ()
    """Parts of the environment that cannot be used, in words."""


def started_environment() -> dict[str, str]:
    """Return the environment with which this process was started."""
    return {os.fsdecode(name): os.fsdecode(value) for name, value in agent_environment().items()}


def command_environment(environment: Mapping[str, str], proxy: str) -> dict[str, str]:
    """Return `environment` with the variables that lead traffic to `proxy` (`host:port`)."""
    return {**environment, **proxy_variables(proxy)}


def find_proxy(environment: Mapping[str, str]) -> FoundProxy | None:
    """Return the proxy that `environment` names, with the exceptions of `NO_PROXY`, or None if it names none."""
    name = next((name for name in _FOUND_VARIABLES if environment.get(name)), None)
    if name is None:
        return None
    url = environment[name]
    scheme, colon, rest = url.rpartition("://")
    authority, slash, path = rest.partition("/")
    text = f"{name}={scheme}{colon}{authority.rpartition('@')[2]}{slash}{path}"
    try:
        proxy = UpstreamProxy.parse(url)
    except RouteError as wrong:
        return FoundProxy(text, None, (wrong.message.removeprefix("--upstream-proxy: "),))
    exceptions, problems = [], []
    for word in next((environment[name] for name in _EXCEPTION_VARIABLES if environment.get(name)), "").split(","):
        if word.strip():
            try:
                exceptions += _parse_exception(word.strip())
            except RouteError:
                problems.append(f"the exception {word.strip()} of NO_PROXY is not known")
    return FoundProxy(text, msgspec.structs.replace(proxy, exceptions=tuple(exceptions)), tuple(problems))


def _parse_exception(word: str) -> list[HostPattern]:
    """Return the patterns of `example.com`, which stands for its subdomains too. Raises RouteError."""
    name = word.removeprefix("*").removeprefix(".")
    if not name:
        return [HostPattern.parse("*")]
    found = HostPattern.parse(name)
    is_name = any(part.isalpha() for part in found.host.split(".")[-1:])
    return [found, msgspec.structs.replace(found, host=f"*.{found.host}")] if is_name else [found]
