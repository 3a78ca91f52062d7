"""Methods that a hook overrides."""

from __future__ import annotations

from a2a_proxy.hooks import METHODS, Frame, Hook
from a2a_proxy.hooks.hook import overridden_methods


class _Derived(Hook):
    def on_frame(self, frame: Frame) -> None:
        """Nothing."""


class _Free:
    on_gap = 7

    def on_finding(self, finding: object) -> None:
        """Nothing."""


def test_overridden_methods_are_found() -> None:
    """Also on a class of nobody's, and where an instance has it; what is no method is none."""
    assert overridden_methods(_Derived()) == {"on_frame"}
    assert overridden_methods(_Free()) == {"on_finding"}
    assert overridden_methods(Hook()) == frozenset()
    given = Hook()
    given.close = lambda: None  # type: ignore[method-assign]
    assert overridden_methods(given) == {"close"}


def test_all_method_names_are_listed() -> None:
    """Those that are documented, each with its text."""
    assert {"start", "on_frame", "on_exchange_end", "on_finding", "on_gap", "close"} <= set(METHODS)
    assert all(getattr(Hook, name).__doc__ for name in METHODS)
