! A farm: rank 0 gives out tasks to those who ask; all others work. Ends with no task for each.
program farm
  use mpi
  implicit none
  integer, parameter :: tasks = 30
  integer :: code, rank, ranks, given, ended, who, task
  integer :: status(MPI_STATUS_SIZE)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  if (rank == 0) then
    given = 0
    ended = 0
    do while (ended < ranks - 1)
      call MPI_Recv(task, 1, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, status, code)
      who = status(MPI_SOURCE)
      if (given < tasks) then
        given = given + 1
        call MPI_Send(given, 1, MPI_INTEGER, who, 2, MPI_COMM_WORLD, code)
      else
        ended = ended + 1
        call MPI_Send(0, 1, MPI_INTEGER, who, 2, MPI_COMM_WORLD, code)
      end if
    end do
  else
    task = 1
    do while (task > 0)
      call MPI_Send(task, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, code)
      call MPI_Recv(task, 1, MPI_INTEGER, 0, 2, MPI_COMM_WORLD, status, code)
    end do
  end if
  call MPI_Finalize(code)
end program farm
