"""A conversation as a swimlane: one lane for each party, time downwards."""
