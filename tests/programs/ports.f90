! ports.c in Fortran: others than the roots pass a text of their own, which is nobody's.
program ports
    use mpi
    implicit none
    integer :: rank, ranks, within, root, half, other, ierr
    character(MPI_MAX_PORT_NAME) :: name
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
    call MPI_Comm_rank(half, within, ierr)
    root = ranks / 2 - 1
    name = 'nobody''s'
    if (within == root) then
        if (mod(rank, 2) == 1) then
            call MPI_Recv(name, len(name), MPI_CHARACTER, ranks - 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        else
            call MPI_Open_port(MPI_INFO_NULL, name, ierr)
            call MPI_Send(name, len(name), MPI_CHARACTER, ranks - 1, 0, MPI_COMM_WORLD, ierr)
        end if
        print '(a)', trim(name)
        flush (6)
    end if
    if (mod(rank, 2) == 1) then
        call MPI_Comm_connect(name, MPI_INFO_NULL, root, half, other, ierr)
    else
        call MPI_Comm_accept(name, MPI_INFO_NULL, root, half, other, ierr)
    end if
    call MPI_Comm_disconnect(other, ierr)
    if (within == root .and. mod(rank, 2) == 0) call MPI_Close_port(name, ierr)
    call MPI_Finalize(ierr)
end program ports
