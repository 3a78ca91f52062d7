"""The command line of `a2a-proxy`: arguments become a frozen config, a config becomes one function call.

Only this package prints, and only `main` exits.
"""
