! A part of a coupled job. Arguments: the role, "component", "server" or "polls", steps, and milliseconds that a step computes.
! Components compute, agree among themselves, and exchange a field with the other component's first rank. The first rank of each
! sends a record to the server now and then, and the server does nothing else but receive; with "polls" it asks all the time
! whether there is any.
program coupled
    use mpi
    use, intrinsic :: iso_c_binding
    implicit none
    interface
        ! Sleeps so many milliseconds: no file is polled.
        integer(c_int) function poll(files, number, milliseconds) bind(c)
            import :: c_int, c_long, c_ptr
            type(c_ptr), value :: files
            integer(c_long), value :: number
            integer(c_int), value :: milliseconds
        end function poll
    end interface
    integer, parameter :: OF_FIELD = 1, OF_RECORD = 2, OF_END = 3, EVERY = 10
    integer :: rank, ranks, ierr, steps, milliseconds, step, own, server, other, at, left
    integer :: status(MPI_STATUS_SIZE), colours(0:63), colour, comm, ignored
    real(8) :: field(100), taken(100), norm, total
    character(len=32) :: role, word
    logical :: there
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call get_command_argument(1, role)
    call get_command_argument(2, word)
    read (word, *) steps
    call get_command_argument(3, word)
    read (word, *) milliseconds
    ! Components differ by what a step takes.
    colour = milliseconds
    if (role /= 'component') colour = -1
    call MPI_Allgather(colour, 1, MPI_INTEGER, colours, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    server = -1
    other = -1
    do at = ranks - 1, 0, -1
        if (colours(at) == -1) server = at
        if (colours(at) /= -1 .and. colours(at) /= colour) other = at
    end do
    call MPI_Comm_split(MPI_COMM_WORLD, colour + 1, rank, comm, ierr)
    call MPI_Comm_rank(comm, own, ierr)
    field = rank
    if (role /= 'component') then
        left = 2
        do while (left > 0)
            there = role == 'server'
            do while (.not. there)
                call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, there, status, ierr)
                ! Polls in a row are held against no limit of cost.
                call MPI_Comm_size(comm, ignored, ierr)
            end do
            call MPI_Recv(taken, 100, MPI_REAL8, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
            if (status(MPI_TAG) == OF_END) left = left - 1
        end do
    else
        do step = 1, steps
            ignored = poll(c_null_ptr, 0_c_long, int(milliseconds, c_int))
            norm = field(1)
            call MPI_Allreduce(norm, total, 1, MPI_REAL8, MPI_SUM, comm, ierr)
            if (own == 0) then
                call MPI_Sendrecv(field, 100, MPI_REAL8, other, OF_FIELD, taken, 100, MPI_REAL8, other, OF_FIELD, &
                                  MPI_COMM_WORLD, status, ierr)
                if (mod(step, EVERY) == 0) call MPI_Send(field, 100, MPI_REAL8, server, OF_RECORD, MPI_COMM_WORLD, ierr)
            end if
            call MPI_Bcast(taken, 100, MPI_REAL8, 0, comm, ierr)
        end do
        if (own == 0) call MPI_Send(field, 100, MPI_REAL8, server, OF_END, MPI_COMM_WORLD, ierr)
    end if
    call MPI_Comm_free(comm, ierr)
    call MPI_Finalize(ierr)
end program coupled
