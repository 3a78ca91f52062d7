"""Texts shared by the command lines and the screens: durations, sizes, findings, labels, layouts."""
