"""A stencil whose parts are tasks of ITT: python3 stencil.py STEPS

Rank 0 prints how often each was passed between MPI_Init and MPI_Finalize: `called NAME TIMES`.
"""

import sys

import ittapi
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
line = [float(rank)] * 100
relaxed = 0


@ittapi.task("relax", domain="solver")
def relax():
    global relaxed
    relaxed += 1
    line[1:-1] = [(line[at - 1] + line[at + 1]) / 2 for at in range(1, len(line) - 1)]


for step in range(steps):
    with ittapi.task("step", domain="program"):
        with ittapi.task("exchange", domain="solver"):
            line[0] = world.sendrecv(line[-2], (rank + 1) % ranks, source=(rank - 1) % ranks)
        for _ in range(1 + step % 3):
            relax()
total = world.allreduce(sum(line))
if rank == 0:
    for name, times in [("exchange", steps), ("relax", relaxed), ("step", steps)]:
        print(f"called {name} {times}")
