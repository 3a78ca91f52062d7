"""`a2a-inspect show PLACE --as FORM`: print a call or frame in another form, as the screen's copy
menu does."""

from a2a_inspect.data.references import resolve_place
from a2a_inspect.formats.copying.call import NotOffered, load_call
from a2a_inspect.formats.copying.forms import FORMS
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import is_terminal, print_line, raw_output
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import label_place, make_key


def show_as(recording: Recording, words: tuple[str, ...], form: str) -> None:
    """Print each place in this form. Control characters are removed for a terminal; a file gets the
    exact bytes.

    Raises:
        UserError: no exchange is named, it does not exist, or it has no such form.
    """
    if not words:
        raise UserError(
            "no exchange given", "name one as `ls` prints it: a2a-inspect show 2 --as curl"
        )
    for word in words:
        place = resolve_place(recording, word)
        call = (
            load_call(recording, make_key(place.session, place.exchange))
            if place.exchange
            else None
        )
        if call is None:
            raise UserError(
                f"{word} is not an exchange",
                "name one as `ls` prints it: a2a-inspect show 2 --as curl",
            )
        frame = next((each for each in call.frames if each.seq == place.seq), None)
        if place.seq >= 0 and frame is None:
            raise UserError(
                f"{word} is too far into a long exchange",
                "view it on the screen, or with show --json",
            )
        try:
            _write_output(FORMS[form].make(call, frame))
        except NotOffered as why:
            raise UserError(
                f"{label_place(place.session, place.exchange, place.seq)} cannot be shown as "
                f"{form}: {why}",
                "use --as json or --as raw",
            ) from why


def _write_output(data: bytes) -> None:
    if not is_terminal():
        raw_output().write(data if data.endswith(b"\n") else data + b"\n")
        return
    for line in data.decode("utf-8", "replace").splitlines():
        print_line(line)
