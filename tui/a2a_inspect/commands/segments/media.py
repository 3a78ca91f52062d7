"""Media parts as files: each object once, named by its content; the chunks of an artifact form one
object."""

import hashlib
import mimetypes
from pathlib import Path

import msgspec

from a2a_inspect.commands.segments.conversation_tree import ConversationTree, SessionConversations
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.private_files import open_private
from a2a_proxy.protocol.segments.content import Media

_EXTENSIONS = {
    "audio/wav": ".wav",
    "audio/wave": ".wav",
    "audio/webm": ".webm",
    "audio/pcm": ".pcm",
}
"""Extensions of media types that agents use and that the system's list may lack."""


class MediaObject(msgspec.Struct):
    """The bytes of one part, or of a run of chunks of one artifact."""

    task_id: str
    artifact_id: str
    media_type: str
    filename: str
    data: bytearray
    chunks: list[tuple[int, int]]
    """Arrival time (ns since the epoch) and byte offset in the object of each chunk."""

    @property
    def name(self) -> str:
        """File name that no peer can influence: the digest and the extension of the media type."""
        media_type = self.media_type.partition(";")[0].strip().lower()
        extension = _EXTENSIONS.get(media_type) or mimetypes.guess_extension(media_type) or ".bin"
        return hashlib.sha256(self.data).hexdigest() + extension


def collect_media(
    conversation: ConversationTree, gathered: SessionConversations
) -> list[MediaObject]:
    """Return the media objects of a conversation in order, with the chunks of one artifact and
    media type joined."""
    found: list[MediaObject] = []
    open_now: dict[str, MediaObject] = {}
    for turn in conversation.turns:
        for segment in turn.segments:
            content = gathered.contents.get(segment.id)
            for event in content.heard if content is not None else ():
                if not isinstance(event.what, Media) or event.what.url:
                    continue
                media = event.what
                chunk = media.artifact_id if media.path.startswith("artifactUpdate") else ""
                whole = open_now.get(chunk) if chunk else None
                if whole is None or whole.media_type != media.media_type:
                    whole = MediaObject(
                        conversation.task_id,
                        media.artifact_id,
                        media.media_type,
                        media.filename,
                        bytearray(),
                        [],
                    )
                    found.append(whole)
                    if chunk:
                        open_now[chunk] = whole
                whole.chunks.append((event.at, len(whole.data)))
                whole.data += media.data
    return found


def write_media(folder: Path, objects: list[MediaObject]) -> list[dict[str, object]]:
    """Write each object to a file of its own in `folder` and return the written files as JSON with
    stable names.

    Raises:
        UserError: a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in objects:
            with open(folder / each.name, "wb", opener=open_private) as file:
                file.write(each.data)
    except OSError as wrong:
        raise UserError(
            f"cannot write to {folder}: {wrong.strerror}", "name another folder"
        ) from wrong
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
