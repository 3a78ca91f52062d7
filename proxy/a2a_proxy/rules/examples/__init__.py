"""Examples of rules: conversations as chunk scripts, to be fed to the Observer."""
