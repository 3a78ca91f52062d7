"""The description of the package: README.md, whose links lead to the repository at the tag of this
version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"(!?\[[^\]]*\]\()(?!https?://|#)([^)\s]+\))")


class PackagePage(MetadataHookInterface):
    """The hook of hatchling that sets `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description of the package. `metadata` is the table `project`."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        source, version = metadata["urls"]["Source"], metadata["version"]
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": _link_to(f"{source}/%s/v{version}/", text),
        }


def _link_to(pattern: str, text: str) -> str:
    """Return the text with absolute links; `%s` of the pattern is `raw` for pictures and `blob` for
    pages."""
    return _RELATIVE_LINK.sub(
        lambda link: (
            f"{link[1]}{pattern % ('raw' if link[1].startswith('!') else 'blob')}{link[2]}"
        ),
        text,
    )
