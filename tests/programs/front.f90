! Two ranks pass a number to and fro.
program front
    use mpi
    implicit none
    integer :: rank, round, number(1), ierr
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    number = 0
    do round = 1, 12
        if (mod(rank + round, 2) == 0) then
            number = number + round
            call MPI_Send(number, 1, MPI_INTEGER, 1 - rank, round, MPI_COMM_WORLD, ierr)
        else
            call MPI_Recv(number, 1, MPI_INTEGER, 1 - rank, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        end if
    end do
    print '(i0,a,i0)', rank, ': ', number
    flush (6)
    call MPI_Finalize(ierr)
end program front
