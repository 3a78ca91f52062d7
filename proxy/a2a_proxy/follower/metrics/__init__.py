"""`--metrics`: what was recorded as numbers for Prometheus, and whether all is well, served by a process of its own.

`numbers` what is counted, `reading` where it comes from, `serve` the three pages, `keeper` the side of the proxy. The
process keeps nothing: begun anew it counts the session from its start again.
"""
