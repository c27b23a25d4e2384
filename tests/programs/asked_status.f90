! Statuses that are passed to MPI, on 2 ranks: those of messages, which have tag 71, and those of sends.
program asked_status
    use mpi
    implicit none
    integer :: rank, round, sent(1), got(1), number, request, ierr
    integer :: status(MPI_STATUS_SIZE), several(MPI_STATUS_SIZE, 2), requests(2)
    logical :: flag
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    sent = rank
    do round = 1, 3
        call MPI_Sendrecv(sent, 1, MPI_INTEGER, 1 - rank, 71, got, 1, MPI_INTEGER, 1 - rank, 71, MPI_COMM_WORLD, status, ierr)
        call MPI_Get_count(status, MPI_INTEGER, number, ierr)
        status = 1431655765
        call MPI_Isend(sent, 1, MPI_INTEGER, 1 - rank, 71, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Irecv(got, 1, MPI_INTEGER, 1 - rank, 71, MPI_COMM_WORLD, requests(2), ierr)
        request = requests(1)
        call MPI_Wait(request, status, ierr)
        call MPI_Test_cancelled(status, flag, ierr)
        call MPI_Isend(sent, 1, MPI_INTEGER, 1 - rank, 71, MPI_COMM_WORLD, requests(1), ierr)
        several = 1431655765
        call MPI_Waitall(2, requests, several, ierr)
        call MPI_Test_cancelled(several(:, 1), flag, ierr)
        call MPI_Get_count(several(:, 2), MPI_INTEGER, number, ierr)
        call MPI_Recv(got, 1, MPI_INTEGER, 1 - rank, 71, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    end do
    call MPI_Finalize(ierr)
end program asked_status
