"""Send requests on kept connections by httpx or requests, with pauses, and print the number of each
result.

`keepalive_client.py httpx URL NUMBER EVERY SECONDS` sends NUMBER requests and waits SECONDS after
each EVERY of them; a result is a status, or the name of an exception.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections import Counter

library, url = sys.argv[1:3]
number, every, seconds = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
module = importlib.import_module(library)
results: Counter[str] = Counter()
with module.Client() if library == "httpx" else module.Session() as session:
    for done in range(1, number + 1):
        try:
            results[str(session.get(url, timeout=60).status_code)] += 1
        except Exception as error:  # each library has its own
            results[repr(error)] += 1
        if done % every == 0:
            time.sleep(seconds)
print(json.dumps(results))
