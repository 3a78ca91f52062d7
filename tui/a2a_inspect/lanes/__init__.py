"""A conversation as a swimlane: one lane per party, time downwards."""
