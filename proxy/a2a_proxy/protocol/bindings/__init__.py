"""How A2A is carried: one module per binding, from wire events of one stream to frames."""
