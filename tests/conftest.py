"""For all tests: property tests look at the same examples on every run, however slow the machine.

`HYPOTHESIS_PROFILE=search pytest` looks for new ones. A terminal that hangs up does to the processes of the tests what
it does to any, also where the tests were started by `nohup`, whose children ignore it.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
