"""Measures questions to a run, and the same questions to its Parquet files by DuckDB: bench_query.py AMPL RUN NAME"""

import json
import os
import subprocess
import sys
import time

import duckdb

AMPL, RUN, NAME = sys.argv[1:]
LATER = 5
PIXELS = 1340


def measured(*words):
    """Seconds, peak MB and output of a command."""
    begin = time.perf_counter()
    process = subprocess.Popen([AMPL, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return time.perf_counter() - begin, usage.ru_maxrss / 1000, output


def later(*words):
    """The same of the median of several runs."""
    return sorted(measured(*words) for _ in range(LATER))[LATER // 2]


def size(path):
    return os.path.getsize(path) / 1e6


info = json.loads(measured("info", RUN, "--json")[2])
rows = json.loads(measured("query", RUN, "--index", "off", "--json", "volume")[2])
begin, end = rows[0]["start_ns"], max(row["end_ns"] for row in rows)
length = end - begin
part = ["--from", f"{begin + length // 7}ns", "--until", f"{begin + length * 6 // 7}ns"]
summary = ["query", RUN, "--json", "summary", *part]
timeline = ["query", RUN, "--json", "timeline", "--width", str(PIXELS), "--ranks", f"0-{min(info['ranks'], 64) - 1}"]

print(f"\n{NAME}: {info['ranks']} ranks, {info['recorded_calls']:,} calls")
print(f"  trace {size(RUN + '/trace.ampl'):.1f} MB, {info['trace_bytes']['timing'] / 1e6:.1f} MB of it times")
seconds, peak, _ = measured("query", RUN, "--index", "off", "volume")
print(f"  open {seconds:8.3f} s {peak:6.0f} MB")
plain = {}
for name, words in [("summary", summary), ("timeline", timeline)]:
    seconds, peak, plain[name] = measured(*words, "--index", "off")
    print(f"  {name} by the times {seconds:8.3f} s {peak:6.0f} MB")
made, made_peak, _ = measured("query", RUN, "--index", "build", "summary")
print(f"  index made in {made:8.3f} s {made_peak:6.0f} MB, {size(RUN + '/trace.ampl.index'):.1f} MB")
for name, words in [("summary", summary), ("timeline", timeline)]:
    seconds, peak, found = measured(*words)
    print(f"  first {name} {seconds:8.3f} s {peak:6.0f} MB")
    seconds, peak, found = later(*words)
    print(f"  later {name} {seconds:8.3f} s {peak:6.0f} MB")

data = RUN + ".parquet"
seconds, peak, _ = measured("export", RUN, "--to", "parquet", "-o", data)
print(f"  Parquet made in {seconds:8.3f} s {peak:6.0f} MB, {size(data + '/calls.parquet'):.1f} MB")
calls = f"'{data}/calls.parquet'"
first, last = begin + length // 7, begin + length * 6 // 7
overlap = "least(start_ns + duration_ns, {1}) - greatest(start_ns, {0})"
questions = {
    "summary": f"""select function, site, count(*), sum(greatest({overlap.format(first, last)}, 0)) from {calls}
        where start_ns < {last} and start_ns + duration_ns > {first} group by all""",
    "timeline": f"""with spans as (select rank, function, start_ns, start_ns + duration_ns as end_ns,
            (start_ns - {begin}) * {PIXELS} // {length} as low, (end_ns - {begin}) * {PIXELS} // {length} as high
            from {calls} where rank < 64 and duration_ns is not null),
        pixels as (select *, unnest(generate_series(low, high)) as pixel from spans)
        select rank, pixel, function, sum(least(end_ns, {begin} + (pixel + 1) * {length} / {PIXELS})
            - greatest(start_ns, {begin} + pixel * {length} / {PIXELS})) from pixels group by all""",
}
for name, question in questions.items():
    times = []
    for _ in range(LATER):
        begun = time.perf_counter()
        duckdb.connect().sql(question).fetchall()
        times.append(time.perf_counter() - begun)
    print(f"  DuckDB {name} {sorted(times)[LATER // 2]:8.3f} s")
