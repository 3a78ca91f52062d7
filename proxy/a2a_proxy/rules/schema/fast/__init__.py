"""Payloads that are beyond doubt: what the gate lets pass without asking any rule about payloads."""
