! Calls that repeat, by mpif.h's interface and by mpi_f08's, with values that change behind the same addresses: counts, tags,
! partners, flags, statuses that are read or ignored, requests that are made, polled and completed.
!
! usage: repeats TURNS
!
! What each rank calls follows from its number alone: polls find nothing, whoever is early.
#ifdef F08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#else
#define COMM integer
#define REQUEST integer
#endif
program repeats
#ifdef F08
    use mpi_f08
#else
    use mpi
#endif
    implicit none
    integer :: rank, ranks, turn, turns, length, tag, left, right, ierror, i, n, found
    integer :: values(8), answers(8), indices(4)
    logical :: flag
    character(len=16) :: word
    COMM :: comm
    REQUEST :: one, several(4)
#ifdef F08
    type(MPI_Status) :: status, statuses(4)
#else
    integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4)
#endif

    call get_command_argument(1, word)
    read (word, *) turns
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    left = modulo(rank - 1, ranks)
    right = modulo(rank + 1, ranks)
    values = rank
    do turn = 0, turns - 1
        length = merge(3, 2, modulo(turn, 5) == 4)
        tag = modulo(turn / 3, 4)
        call MPI_Comm_rank(comm, i, ierror)
        call MPI_Comm_size(comm, n, ierror)
        call MPI_Sendrecv(values, length, MPI_INTEGER, right, tag, answers, 8, MPI_INTEGER, left, tag, comm, status, ierror)
        call MPI_Get_count(status, MPI_INTEGER, n, ierror)
        call MPI_Sendrecv(values, 1, MPI_INTEGER, right, 9, answers, 1, MPI_INTEGER, left, 9, MPI_COMM_WORLD, &
                          MPI_STATUS_IGNORE, ierror)
        do i = 0, modulo(turn, 4)
            call MPI_Iprobe(MPI_ANY_SOURCE, 99, comm, flag, MPI_STATUS_IGNORE, ierror)
        end do
        call MPI_Allreduce(rank, i, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
        call MPI_Bcast(values, length, MPI_INTEGER, modulo(turn, ranks), comm, ierror)
        ! Nothing comes before this rank sends it.
        n = 1 + modulo(turn / 2, 4)
        do i = 1, n
            call MPI_Irecv(answers(i), 1, MPI_INTEGER, rank, 20 + i, comm, several(i), ierror)
        end do
        do i = 0, modulo(turn, 3)
            call MPI_Testsome(n, several, found, indices, MPI_STATUSES_IGNORE, ierror)
            call MPI_Testall(n, several, flag, statuses, ierror)
            call MPI_Testany(n, several, found, flag, status, ierror)
            call MPI_Test(several(n), flag, MPI_STATUS_IGNORE, ierror)
        end do
        do i = 1, n
            call MPI_Isend(values(i), 1, MPI_INTEGER, rank, 20 + i, comm, one, ierror)
            call MPI_Wait(one, MPI_STATUS_IGNORE, ierror)
        end do
        if (modulo(turn, 2) == 0) then
            call MPI_Waitall(n, several, MPI_STATUSES_IGNORE, ierror)
        else
            do i = 1, n
                call MPI_Wait(several(i), status, ierror)
            end do
        end if
        call MPI_Barrier(comm, ierror)
    end do
    call MPI_Comm_free(comm, ierror)
    call MPI_Finalize(ierror)
end program
