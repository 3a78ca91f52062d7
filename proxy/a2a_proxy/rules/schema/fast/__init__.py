"""Fast validity checks, used by the gate to skip the rules about payloads."""
