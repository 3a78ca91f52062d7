"""Text for people that the command lines and the screens share: durations, sizes, findings, labels, layouts."""
