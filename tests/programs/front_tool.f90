! A tool in Fortran: it defines the external procedures, and goes on by their profiling names.
subroutine mpi_init(ierr)
    implicit none
    integer :: ierr
    call pmpi_init(ierr)
end subroutine

subroutine mpi_send(buffer, count, datatype, dest, tag, comm, ierr)
    implicit none
    integer :: buffer(*), count, datatype, dest, tag, comm, ierr, sends
    common /front_tool/ sends
    sends = sends + 1
    call pmpi_send(buffer, count, datatype, dest, tag, comm, ierr)
end subroutine

subroutine mpi_finalize(ierr)
    implicit none
    integer :: ierr, sends
    common /front_tool/ sends
    print '(a,i0,a)', 'the tool saw ', sends, ' messages'
    flush (6)
    call pmpi_finalize(ierr)
end subroutine
