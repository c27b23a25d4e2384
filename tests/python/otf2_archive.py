"""Reads an OTF2 archive by OTF2's own Python module, and prints what it found as JSON."""

import collections
import json
import sys

import otf2
from otf2.events import Enter, Leave, MeasurementOnOff, MpiCollectiveEnd, MpiRecv, MpiSend

functions = collections.defaultdict(lambda: [0, 0])
found = {name: collections.Counter() for name in ("sends", "receives", "collectives", "bytes")}
opened = collections.defaultdict(list)
off = 0
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        rank = int(location.group.name.split()[1])
        if isinstance(event, Enter):
            opened[location].append((event.region.name, event.time))
        elif isinstance(event, Leave):
            name, since = opened[location].pop()
            assert name == event.region.name
            functions[name][0] += 1
            functions[name][1] += event.time - since
        elif isinstance(event, MpiSend):
            found["sends"][f"{rank} {event.receiver} {event.msg_tag}"] += 1
            found["bytes"][str(rank)] += event.msg_length
        elif isinstance(event, MpiRecv):
            found["receives"][f"{event.sender} {rank} {event.msg_tag}"] += 1
        elif isinstance(event, MpiCollectiveEnd):
            found["collectives"][f"{event.collective_op} {event.communicator.name}"] += 1
        elif isinstance(event, MeasurementOnOff):
            off += 1
print(json.dumps({"functions": functions, "switches": off, **found}))
