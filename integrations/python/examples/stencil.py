"""A stencil that names its parts to ampl: python3 stencil.py STEPS

It runs unchanged without ampl. Rank 0 prints how often each part was passed between MPI_Init and MPI_Finalize:
`called NAME TIMES`.
"""

import sys

import ampl
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
line = [float(rank)] * 100
relaxed = 0


@ampl.region("relax")
def relax():
    global relaxed
    relaxed += 1
    line[1:-1] = [(line[at - 1] + line[at + 1]) / 2 for at in range(1, len(line) - 1)]


def check():
    with ampl.region("check"):
        if rank >= 0:
            raise ValueError("left by an exception")


for step in range(steps):
    with ampl.region("step"):
        with ampl.region("exchange"):
            line[0] = world.sendrecv(line[-2], (rank + 1) % ranks, source=(rank - 1) % ranks)
        ampl.metric("moved", 8)
        for _ in range(1 + step % 3):
            relax()
try:
    check()
except ValueError:
    pass
total = world.allreduce(sum(line))
if rank == 0:
    for name, times in [("check", 1), ("exchange", steps), ("relax", relaxed), ("step", steps)]:
        print(f"called {name} {times}")
