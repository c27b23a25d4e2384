"""Reads exports with software from elsewhere, and prints what it found as JSON.

Arguments: a data set of runs as Parquet, a timeline for Perfetto.
"""

import collections
import json
import sys

import dask.dataframe
import duckdb
import pandas
import polars
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

DATA_SET, TIMELINE = sys.argv[1:]
FUNCTIONS = f"{DATA_SET}/*/functions.parquet"


def by_run(rows):
    found = collections.defaultdict(dict)
    for run, function, calls in rows:
        found[str(run)][function] = int(calls)
    return found


def duck(table, columns, where="true"):
    return duckdb.sql(
        f"select run, function, {columns} from read_parquet('{DATA_SET}/*/{table}.parquet', hive_partitioning = true) "
        f"where {where} group by all"
    ).fetchall()


def frames():
    found = {"duckdb": by_run(duck("functions", "sum(calls)"))}
    lazy = polars.scan_parquet(FUNCTIONS, hive_partitioning=True)
    found["polars"] = by_run(lazy.group_by("run", "function").agg(polars.col("calls").sum()).collect().rows())
    frame = pandas.concat(
        pandas.read_parquet(f"{DATA_SET}/run={run}/functions.parquet").assign(run=run) for run in found["duckdb"]
    )
    grouped = frame.groupby(["run", "function"])["calls"].sum().reset_index()
    found["pandas"] = by_run(grouped.itertuples(index=False))
    parts = dask.dataframe.read_parquet(
        [f"{DATA_SET}/run={run}/functions.parquet" for run in found["duckdb"]], engine="pyarrow"
    )
    total = parts.groupby("function")["calls"].sum().compute()
    found["dask"] = {"all": {name: int(calls) for name, calls in total.items()}}
    return found


def slices():
    """Number and total length of Perfetto's slices, by name, those of stretches without times apart."""
    trace = perfetto.Trace()
    with open(TIMELINE, "rb") as file:
        trace.ParseFromString(file.read())
    names, tracks, opened = {}, {}, collections.defaultdict(list)
    found = collections.defaultdict(lambda: [0, 0])
    begins, ends = {}, {}
    for packet in trace.packet:
        for name in packet.interned_data.event_names:
            names[name.iid] = name.name
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.parent_uuid in tracks or not tracks, "a track comes behind its parent"
            tracks[track.uuid] = track.name
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            assert event.track_uuid in tracks
            opened[event.track_uuid].append((names[event.name_iid], packet.timestamp))
            for flows, ids in ((begins, event.flow_ids), (ends, event.terminating_flow_ids)):
                for number in ids:
                    assert number not in flows, "a message is sent once and received once"
                    flows[number] = tracks[event.track_uuid]
        elif event.type == event.TYPE_SLICE_END:
            name, since = opened[event.track_uuid].pop()
            found[name][0] += 1
            found[name][1] += packet.timestamp - since
    ranks = [name for name in tracks.values() if name.startswith("rank ")]
    assert begins.keys() == ends.keys()
    pairs = collections.Counter(f"{begins[number]} {ends[number]}" for number in begins)
    return {"slices": found, "ranks": ranks, "flows": pairs}


timed = {
    f"{run} {function}": [int(calls), int(nanos)]
    for run, function, calls, nanos in duck("calls", "count(*), sum(duration_ns)", "duration_ns is not null")
}
messages = duckdb.sql(
    f"select source, dest, count(*) from read_parquet('{DATA_SET}/run=first/messages.parquet') group by all"
).fetchall()
print(json.dumps({"messages": messages, "frames": frames(), "perfetto": slices(), "timed": timed}))
