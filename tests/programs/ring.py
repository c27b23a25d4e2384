"""A ring and a reduction with mpi4py, whose wheel loads MPI out of the global search order."""

import sys
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
total = 0
for turn in range(20):
    out, into = array("i", [rank * 100 + turn]), array("i", [-1])
    comm.Sendrecv(out, (rank + 1) % ranks, 1, into, (rank - 1) % ranks, 1)
    total += into[0]
everyone = comm.allreduce(total)
words = comm.gather(f"rank {rank}: {total}", root=0)


def say(text):
    # One write a line: print makes two, and ranks' lines would mix.
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


try:
    comm.Send(array("i", [1]), dest=ranks + 5)
except MPI.Exception as error:
    say(f"rank {rank}: refused as {error.Get_error_class() == MPI.ERR_RANK}")
if rank == 0:
    say(f"{'; '.join(words)} {everyone}")
