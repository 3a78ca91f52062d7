"""The findings by rule, driven by keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.screens.main import MainScreen
from a2a_proxy.model.values import Finding, Severity
from support_inspect import changes, exchange, request, status, writer
from support_recording import STARTED
from support_screen import LARGE, SMALL, looking


def made(path: Path) -> Path:
    """Three calls, the second with a warning, the third with an error at its frame 1, and one about
    the connection."""
    recorded = writer(path)
    found = [
        Finding("A2A-SCH-001", Severity.WARNING, STARTED, "no `id`", 1, 2, 0),
        Finding("A2A-GEN-001", Severity.ERROR, STARTED, "4 is missing", 1, 3, 1),
        Finding("A2A-HTTP-001", Severity.INFO, STARTED, "a remark", 1),
    ]
    frames = [request(n) for n in (1, 2, 3)] + [status(3, 1, "a")]
    recorded.write(frames, found, changes(*map(exchange, (1, 2, 3))))
    recorded.close()
    return path


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE])
async def test_enter_goes_to_the_place(tmp_path: Path, size: tuple[int, int]) -> None:
    """The most severe rule first; the list shows the exchange also if a filter hides it, and the
    tab its finding."""
    async with looking(made(tmp_path / "r.db"), size) as person:
        await person.sees("3 exchanges")
        await person.types("slash", *"sev=warning", "enter")
        await person.lists(2)
        await person.types("r")
        await person.sees(
            "3 findings by rule", "▶ error      1  A2A-GEN-001", "▶ warning    1  A2A-SCH-001"
        )
        at = [
            next(y for y, line in enumerate(person.lines) if word in line)
            for word in ("GEN-001", "SCH-001")
        ]
        assert at == sorted(at)
        await person.types("enter")
        await person.sees("▼ error", "#3.1  4 is missing")
        await person.types("j", "enter")
        await person.lists(1, 2, 3)

        def there() -> bool:
            line = person.frames.current_row
            return line is not None and (line.row.frame.exchange, line.row.frame.seq) == (3, 1)

        await person.until(there, "the frame")
        screen = person.app.screen
        assert isinstance(screen, MainScreen)
        assert screen.widgets.detail.current_view.id == "findings"


async def test_a_finding_without_an_exchange(tmp_path: Path) -> None:
    """It is named, and nothing moves; Enter closes an open rule; Esc goes back."""
    async with looking(made(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        await person.types("r")
        await person.sees("▶ info")
        await person.types("j", "j", "l")
        await person.sees("▼ info", "connection 1  a remark")
        await person.types("enter")
        await person.sees("▶ info")
        await person.types("enter")
        await person.sees("▼ info", "connection 1  a remark")
        await person.types("j", "enter")
        await person.await_notice("about a connection")
        await person.types("r", "escape")
        await person.sees("OPERATION", "FOUND")
