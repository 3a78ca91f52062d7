"""The command line of `a2a-proxy`: arguments are parsed into a frozen config, and a config is run by one function call.

Only this package prints, and only `main` exits.
"""
