"""How much passed when, and how long calls took: histograms and distributions."""
