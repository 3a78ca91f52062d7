"""Look at recordings: a Textual screen and its headless twin; never opens a socket."""
