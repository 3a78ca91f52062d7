"""ClickHouse in this process: queries as a JSON list on stdin, the rows of each as JSON on
stdout."""

from __future__ import annotations

import json
import sys

from chdb.session import Session


def main() -> None:
    session = Session()
    told = [
        session.query(query, "JSONCompactEachRow").bytes().decode()
        for query in json.load(sys.stdin)
    ]
    print(json.dumps([[json.loads(row) for row in rows.splitlines()] for rows in told]))


main()
