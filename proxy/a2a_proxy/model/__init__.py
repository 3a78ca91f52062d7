"""The vocabulary: every value that moves between the floors, and nothing that acts.

Read `chunk` for what goes in, `wire` for what the wire decoders say, and `observation` for what comes out.
"""
