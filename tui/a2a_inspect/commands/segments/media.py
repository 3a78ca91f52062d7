"""Media written out: each object once, named by its content; chunks of an artifact as the one object they are."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path

import msgspec

from a2a_inspect.commands.segments.conversation_tree import ConversationTree, SessionConversations
from a2a_proxy.cli.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.protocol.segments.content import Media

_EXTENSIONS = {"audio/wav": ".wav", "audio/wave": ".wav", "audio/webm": ".webm", "audio/pcm": ".pcm"}
"""Of media types that agents speak in, and that are in no system's list."""


class MediaObject(msgspec.Struct):
    """The bytes of one part, or of a run of chunks of one artifact."""

    task_id: str
    artifact_id: str
    media_type: str
    filename: str
    data: bytearray
    chunks: list[tuple[int, int]]
    """Of each chunk: when it came (ns), and where it begins in the object."""

    @property
    def name(self) -> str:
        """A file name that no peer has a say in: the digest, and what fits the media type."""
        media_type = self.media_type.partition(";")[0].strip().lower()
        known = _EXTENSIONS.get(media_type) or mimetypes.guess_extension(media_type) or ".bin"
        return hashlib.sha256(self.data).hexdigest() + known


def collect_media(conversation: ConversationTree, gathered: SessionConversations) -> list[MediaObject]:
    """The objects of a conversation in order; chunks of one artifact with one media type follow each other."""
    found: list[MediaObject] = []
    open_now: dict[str, MediaObject] = {}
    for turn in conversation.turns:
        for segment in turn.segments:
            content = gathered.contents.get(segment.id)
            for heard in content.heard if content is not None else ():
                if not isinstance(heard.what, Media) or heard.what.url:
                    continue
                media = heard.what
                chunk = media.artifact_id if media.path.startswith("artifactUpdate") else ""
                whole = open_now.get(chunk) if chunk else None
                if whole is None or whole.media_type != media.media_type:
                    whole = MediaObject(
                        conversation.task_id, media.artifact_id, media.media_type, media.filename, bytearray(), []
                    )
                    found.append(whole)
                    if chunk:
                        open_now[chunk] = whole
                whole.chunks.append((heard.at, len(whole.data)))
                whole.data += media.data
    return found


def write_media(folder: Path, objects: list[MediaObject]) -> list[dict[str, object]]:
    """Write each to a file of its own in `folder`; what was written, as JSON with stable names.

    Raises:
        UserError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in objects:
            (folder / each.name).write_bytes(each.data)
    except OSError as wrong:
        raise UserError(f"cannot write to {folder}: {wrong.strerror}", "name another folder") from wrong
    return [
        {
            "file": each.name,
            "task_id": each.task_id,
            "artifact_id": each.artifact_id or None,
            "media_type": each.media_type,
            "filename": each.filename,
            "size": len(each.data),
            "chunks": [{"at": text.format_utc(at), "offset": offset} for at, offset in each.chunks],
        }
        for each in objects
    ]
