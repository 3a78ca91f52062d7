"""Environment variables of the command, and the proxy that they named before."""

import os
from collections.abc import Mapping

import msgspec

from a2a_proxy.cli.authority import proxy_variables
from a2a_proxy.relay.host_patterns import HostPattern
from a2a_proxy.relay.route import RouteError
from a2a_proxy.relay.stdio_agent import agent_environment
from a2a_proxy.relay.upstream_proxy import UpstreamProxy

_FOUND_VARIABLES = (
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
)
JAVA_OPTIONS = "JAVA_TOOL_OPTIONS"
_EXCEPTION_VARIABLES = ("NO_PROXY", "no_proxy")


class FoundProxy(msgspec.Struct, frozen=True):
    """A proxy that the environment names."""

    text: str
    """Variable and value without user information: `HTTPS_PROXY=http://proxy:3128`."""
    proxy: UpstreamProxy | None = None
    """None if upstreams cannot be dialled through it."""
    problems: tuple[str, ...] = ()
    """Parts of the environment that cannot be used, in words."""


class JavaOptions(msgspec.Struct, frozen=True):
    """Options of JVMs, which read them from `JAVA_TOOL_OPTIONS`."""

    truststore: str = ""
    """File of the certificates that they trust; empty for their own."""
    password: str = ""

    def list_options(self, proxy: str) -> list[str]:
        """Return the options for a proxy (`host:port`). Without exceptions, JVMs use it for this
        machine too."""
        host, _, port = proxy.rpartition(":")
        options = []
        for scheme in ("http", "https"):
            options += [f"-D{scheme}.proxyHost={host}", f"-D{scheme}.proxyPort={port}"]
        options.append("-Dhttp.nonProxyHosts=")
        if self.truststore:
            options.append(f"-Djavax.net.ssl.trustStore={_quote(self.truststore)}")
            options += [
                "-Djavax.net.ssl.trustStoreType=PKCS12",
                f"-Djavax.net.ssl.trustStorePassword={self.password}",
            ]
        return options


def _quote(text: str) -> str:
    """Return a value as `JAVA_TOOL_OPTIONS` needs it if it has spaces."""
    return f'"{text}"' if " " in text else text


def started_environment() -> dict[str, str]:
    """Return the environment with which this process was started."""
    return {os.fsdecode(name): os.fsdecode(value) for name, value in agent_environment().items()}


def command_environment(
    environment: Mapping[str, str], proxy: str, java: JavaOptions | None = None
) -> dict[str, str]:
    """Return `environment` with the variables that lead traffic to `proxy` (`host:port`), with
    `java` of JVMs too."""
    changed = {**environment, **proxy_variables(proxy)}
    if java is not None:
        options = environment.get(JAVA_OPTIONS, ""), *java.list_options(proxy)
        changed[JAVA_OPTIONS] = " ".join(filter(None, options))
    return changed


def find_proxy(environment: Mapping[str, str]) -> FoundProxy | None:
    """Return the proxy that `environment` names, with the exceptions of `NO_PROXY`, or None if it
    names none."""
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
    for word in next(
        (environment[name] for name in _EXCEPTION_VARIABLES if environment.get(name)), ""
    ).split(","):
        if word.strip():
            try:
                exceptions += _parse_exception(word.strip())
            except (RouteError, ValueError):
                problems.append(f"the exception {word.strip()} of NO_PROXY is not known")
    return FoundProxy(
        text, msgspec.structs.replace(proxy, exceptions=tuple(exceptions)), tuple(problems)
    )


def _parse_exception(word: str) -> list[HostPattern]:
    """Return the patterns of `example.com`, which stands for its subdomains too, or of the network
    `10.0.0.0/8`.

    Raises RouteError or ValueError.
    """
    if "/" in word:
        return [HostPattern.parse_network(word)]
    name = word.removeprefix("*").removeprefix(".")
    if not name:
        return [HostPattern.parse("*")]
    found = HostPattern.parse(name)
    is_name = any(part.isalpha() for part in found.host.split(".")[-1:])
    return [found, msgspec.structs.replace(found, host=f"*.{found.host}")] if is_name else [found]
