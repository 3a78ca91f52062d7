"""Rules: protocol violations found in passing traffic. Pure: values in, findings out, time as an argument."""
