! Messages, collectives and every kind of object through `use mpi_f08`, each call logged; with
! WITHOUT_IERROR no call has that argument.
!
! usage: PROGRAM [LOG [threads]]   see fortran_mpi.F90.
#define T_COMM type(MPI_Comm)
#define T_TYPE type(MPI_Datatype)
#define T_OP type(MPI_Op)
#define T_GROUP type(MPI_Group)
#define T_INFO type(MPI_Info)
#define T_ERRHANDLER type(MPI_Errhandler)
#define T_FILE type(MPI_File)
#define T_WIN type(MPI_Win)
#define T_MESSAGE type(MPI_Message)
#define T_REQUEST type(MPI_Request)
#define T_ADDRESS type(c_ptr)
#define STATUS(s) type(MPI_Status) :: s
#define STATUSES(s, n) type(MPI_Status) :: s(n)
#define SOURCE_OF(s) s%MPI_SOURCE
#define TOLD(s) v(s%MPI_SOURCE), v(s%MPI_TAG)
#define TOLD_AT(s, i) v(s(i)%MPI_SOURCE), v(s(i)%MPI_TAG)
#define FARED(s, i) TOLD_AT(s, i), v(s(i)%MPI_ERROR)
#define ID(x) x%MPI_VAL
#define H(x) v(x%MPI_VAL)
#define ALL_H(x) v(size(x)), v(x%MPI_VAL)
#define SOME_H(x, n) v(n), v(x(1:n)%MPI_VAL)
#define SECTIONS
#define GIVES_BUFFERS
#ifdef WITHOUT_IERROR
#define IERR
#define HAS_IERROR .false.
#else
#define IERR , ierr
#define HAS_IERROR .true.
#endif
#define SOME(x, n) v(n), v(x(1:n))
#define GIVEN(x) transfer(x, 0_MPI_ADDRESS_KIND)

module calls
    use mpi_f08
    use recorder
    use iso_c_binding, only: c_ptr, c_f_pointer, c_null_ptr
    implicit none
#include "fortran_data.inc"
contains

    subroutine combine(from, into, length, type)
        type(c_ptr), value :: from, into
        integer :: length
        type(MPI_Datatype) :: type
        integer, pointer :: a(:), b(:)
        call c_f_pointer(from, a, [length])
        call c_f_pointer(into, b, [length])
        b = b + 2 * a
    end subroutine

#include "fortran_messages.inc"
#include "fortran_objects.inc"

end module

program fortran_f08
    use calls
    call everything
end program
