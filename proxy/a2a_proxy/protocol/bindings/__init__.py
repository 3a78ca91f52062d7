"""The bindings of A2A: one module per binding, which decodes the wire events of one stream into
frames."""
