"""The shapes of A2A objects: one table per form of a dialect, for the checks, conversions and
readers of every package.

Layers, from top to bottom:
- `json_0_3`: JSON objects of 0.1 to 0.3, and cards that serve two dialects
- `protobuf_shapes`: messages with a protobuf definition, and their JSON in 1.0
- `required_members`: required members, which descriptors lack
- `shape`: types of the tables
"""
