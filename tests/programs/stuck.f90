! Rank 0 waits for a message that rank 1 never sends; rank 1 waits in a barrier.
program stuck
  use mpi
  implicit none
  integer :: ierror, rank, number, status(MPI_STATUS_SIZE)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  if (rank == 0) then
    call MPI_Recv(number, 1, MPI_INTEGER, 1, 43, MPI_COMM_WORLD, status, ierror)
  else
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end if
  call MPI_Finalize(ierror)
end program stuck
