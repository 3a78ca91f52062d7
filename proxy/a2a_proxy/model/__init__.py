"""The vocabulary: every value passed between the layers, without behaviour.

`chunk` is the input, `wire` the output of the wire decoders, `observation` the output of the observer.
"""
