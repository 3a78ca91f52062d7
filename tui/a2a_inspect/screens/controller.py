"""Base of the controllers of the main screen.

The screen owns one controller for each of its concerns. A controller is no widget: it has the
screen, on which it runs workers, shows messages and pushes other screens. It does not import the
module of the screen; other controllers are passed to its constructor.
"""

from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from textual.screen import Screen

from a2a_proxy.protocol.text import make_visible

_Parameters = ParamSpec("_Parameters")
_Owner = TypeVar("_Owner", bound="Controller")


class Controller:
    """One concern of a screen."""

    def __init__(self, screen: Screen[None]) -> None:
        self.screen = screen

    def show_message(self, message: str, *, is_error: bool = False) -> None:
        """Show a message that disappears by itself."""
        self.screen.notify(
            make_visible(message), severity="error" if is_error else "information", markup=False
        )


def run_in_background(
    group: str, *, exclusive: bool = False
) -> Callable[
    [Callable[Concatenate[_Owner, _Parameters], Coroutine[None, None, None]]],
    Callable[Concatenate[_Owner, _Parameters], None],
]:
    """Run a method of a controller as a worker of its screen, as `textual.work` does for a method
    of a widget.

    `exclusive` cancels the workers of the same group first.
    """

    def decorate(
        method: Callable[Concatenate[_Owner, _Parameters], Coroutine[None, None, None]],
    ) -> Callable[Concatenate[_Owner, _Parameters], None]:
        def start(
            self: _Owner, /, *arguments: _Parameters.args, **options: _Parameters.kwargs
        ) -> None:
            work: Any = partial(
                method, self, *arguments, **options
            )  # of the union that run_worker takes
            self.screen.run_worker(work, name=method.__name__, group=group, exclusive=exclusive)

        update_wrapper(start, method)
        return start

    return decorate
