! Time steps as a subroutine that calls itself: `paths STEPS`
program paths
  use mpi
  implicit none
  integer :: steps, code
  character(len=16) :: text
  call get_command_argument(1, text)
  read (text, *) steps
  call MPI_Init(code)
  call step(steps)
  call MPI_Finalize(code)
contains
  recursive subroutine step(left)
    integer, intent(in) :: left
    ! Not on the stack: a buffer is told by where it is.
    double precision, save :: mine, total
    mine = left
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    if (left > 1) call step(left - 1)
    ! Not the last thing to do.
    if (total < mine) print *, 'wrong', left
  end subroutine step
end program paths
