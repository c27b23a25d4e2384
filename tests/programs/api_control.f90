! As api_control.c, with the Fortran module.
program api_control
  use ampl
  use mpi
  implicit none
  integer :: sum, window, i, work, ierror
  character(12) :: padded = "work"

  call MPI_Init(ierror)
  work = ampl_metric_register(padded)
  sum = 0
  do window = 0, 4
    if (window == 2) call MPI_Pcontrol(0)
    do i = 0, window
      call MPI_Allreduce(1, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
      call ampl_metric_add(work, 1d0)
    end do
    if (window == 2) call MPI_Pcontrol(1)
    if (modulo(window, 2) == 1) then
      call MPI_Pcontrol(5)
    else
      call ampl_marker()
    end if
  end do
  print '(i0)', sum
  call MPI_Finalize(ierror)
end program
