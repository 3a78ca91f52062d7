"""Examples of rules: conversations as scripts of chunks, played to the Observer."""
