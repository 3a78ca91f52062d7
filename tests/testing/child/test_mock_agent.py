from __future__ import annotations

import pytest

from a2a_proxy.testing.child.mock_agent import translate_options

IN = "(in @pytest.mark.a2a_cassette)"


@pytest.mark.parametrize(
    ("hint", "translated"),
    [
        ("record it again", "record it again"),
        (
            "answer it nevertheless: --match loose, or --match by-operation",
            f'answer it nevertheless: match="loose", or match="by-operation" {IN}',
        ),
        (
            "let it repeat: --policy GetTask=last-sticky",
            f'let it repeat: policies={{"GetTask": "last-sticky"}} {IN}',
        ),
        ("continue nevertheless: --lenient", f"continue nevertheless: lenient=True {IN}"),
        ("deliver them: --allow-redacted", f"deliver them: allow_redacted=True {IN}"),
    ],
)
def test_hints_name_settings_instead_of_options(hint: str, translated: str) -> None:
    assert translate_options(hint) == translated
