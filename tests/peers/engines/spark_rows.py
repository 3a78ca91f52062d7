"""Spark on this machine: queries as a JSON list on stdin, the rows of each as JSON on stdout."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False)
    session = (
        builder.config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", 1)
        .getOrCreate()
    )
    told = [session.sql(query).collect() for query in json.load(sys.stdin)]
    print(json.dumps([[list(row) for row in rows] for rows in told]))


main()
