"""Histograms of traffic over time and distributions of latencies."""
