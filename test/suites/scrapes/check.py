"""Reads paths of scrapes, one a line, and answers each with a line: empty if the page is valid.

The OpenMetrics parser is strict: it refuses duplicates, series of a family that are not together,
buckets out of order or that differ from the count, and counters that are negative or not a number.
It reads OpenMetrics only, which has no blank lines, names a counter without its _total, and ends
with a mark.
"""

import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
from prometheus_client.parser import text_string_to_metric_families as plain


def as_open_metrics(text):
    counters = set()
    for line in text.split("\n"):
        mark, kind, name, *rest = line.split(" ", 3) + [""] * 3
        if (mark, kind) == ("#", "TYPE") and rest[0] == "counter":
            counters.add(name)
    lines = []
    for line in filter(None, text.split("\n")):
        parts = line.split(" ", 3)
        if parts[0] == "#" and parts[2] in counters:
            if not parts[2].endswith("_total"):
                raise ValueError(f"a counter without _total: {parts[2]}")
            parts[2] = parts[2].removesuffix("_total")
        lines.append(" ".join(parts))
    return "\n".join([*lines, "# EOF", ""])


def samples(families):
    return sum(len(family.samples) for family in families)


for path in sys.stdin:
    try:
        with open(path.strip(), encoding="utf-8", newline="") as file:
            text = file.read()
        lenient, exact = samples(plain(text)), samples(strict(as_open_metrics(text)))
        problem = "" if lenient == exact else f"{lenient} samples, {exact} by the strict parser"
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".replace("\n", " ")
    print(problem, flush=True)
