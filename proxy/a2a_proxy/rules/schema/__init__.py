"""What A2A objects look like on the wire, and one walk over a payload that finds everything wrong with it."""
