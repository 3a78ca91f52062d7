"""Plug-in of `sqlite-utils`: its commands can call `payload()` on a recording. Imported only by
that tool."""

import sqlite3

from sqlite_utils import hookimpl

from a2a_proxy.recording.store.sql_functions import register_functions


@hookimpl
def prepare_connection(conn: sqlite3.Connection) -> None:
    """Register the functions of a recording on the connection. Harmless on any other database."""
    register_functions(conn)
