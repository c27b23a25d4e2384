! A ring of ranks that relaxes a line of cells, and tells ampl about its time step.
!
!     mpif90 ../../fortran/ampl.f90 stencil.f90 -o stencil
!     ampl run -c ../job.toml -- mpirun -n 4 ./stencil
program stencil
  use ampl
  use mpi
  implicit none

  integer, parameter :: cells_of_a_rank = 1000, steps = 40
  double precision :: cells(cells_of_a_rank), left, right, change, all, next
  integer :: rank, ranks, before, after, step, i, ierror
  integer :: timestep, exchange, cells_done

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = modulo(rank - 1, ranks)
  after = modulo(rank + 1, ranks)

  ! Numbers once, outside of the loop.
  timestep = ampl_region_register("TIMESTEP")
  exchange = ampl_region_register("EXCHANGE")
  cells_done = ampl_metric_register("cells")

  cells = 0
  cells(1) = rank + 1
  all = 0
  do step = 1, steps
    call ampl_region_enter(timestep)

    call ampl_region_enter(exchange)
    call MPI_Sendrecv(cells(cells_of_a_rank), 1, MPI_DOUBLE_PRECISION, after, 0, left, 1, &
        MPI_DOUBLE_PRECISION, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call MPI_Sendrecv(cells(1), 1, MPI_DOUBLE_PRECISION, before, 1, right, 1, MPI_DOUBLE_PRECISION, &
        after, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call ampl_region_exit(exchange)

    change = 0
    do i = 1, cells_of_a_rank
      if (i < cells_of_a_rank) then
        next = (left + cells(i) + cells(i + 1)) / 3
      else
        next = (left + cells(i) + right) / 3
      end if
      change = change + abs(next - cells(i))
      left = cells(i)
      cells(i) = next
    end do
    call ampl_metric_add(cells_done, dble(cells_of_a_rank))
    call MPI_Allreduce(change, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)

    call ampl_region_exit(timestep)
  end do
  if (rank == 0) print '(a, i0, a, f0.6)', 'change after ', steps, ' steps: ', all
  call MPI_Finalize(ierror)
end program
