"""For all tests: property tests look at the same examples on every run, however slow the machine.

`HYPOTHESIS_PROFILE=search pytest` looks for new ones. Signals do to the processes of the tests what
they do to any, also where the tests were started by `nohup` or in the background of a script, whose
children ignore some. A terminal of a test has the size that the test gives it, also where the
machine says `COLUMNS` and `LINES` for all. The keys, views and columns of the person who runs the
tests are not theirs.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

for number, usual in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
os.environ["A2A_PROXY_CONFIG"] = "/nonexistent"
