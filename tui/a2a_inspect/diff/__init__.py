"""What is asked for when two things are to be compared."""
