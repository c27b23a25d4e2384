! Messages, collectives and every kind of object through `use mpi`, each call logged; with
! INCLUDE_MPIF through mpif.h instead.
!
! usage: PROGRAM [LOG [threads]]   writes its calls and then its counts to LOG.<rank>; prints results.
! It begins with MPI_Init_thread or MPI_Init.
! Runs on 1 to 4 ranks.
!
! The procedures are in fortran_messages.inc and fortran_objects.inc. What differs between the
! interfaces is named by macros: the types T_*, the declaration of a STATUS or of STATUSES, and the
! words of the log (fortran_record.f90) for a handle, H(x), and a status, TOLD(s). IERR is the last argument.
#define T_COMM integer
#define T_TYPE integer
#define T_OP integer
#define T_GROUP integer
#define T_INFO integer
#define T_ERRHANDLER integer
#define T_FILE integer
#define T_WIN integer
#define T_MESSAGE integer
#define T_REQUEST integer
#ifdef INCLUDE_MPIF
#define T_ADDRESS integer(MPI_ADDRESS_KIND)
#else
#define T_ADDRESS type(c_ptr)
#endif
#define STATUS(s) integer :: s(MPI_STATUS_SIZE)
#define STATUSES(s, n) integer :: s(MPI_STATUS_SIZE, n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TOLD(s) v(s(MPI_SOURCE)), v(s(MPI_TAG))
#define TOLD_AT(s, i) v(s(MPI_SOURCE, i)), v(s(MPI_TAG, i))
#define FARED(s, i) TOLD_AT(s, i), v(s(MPI_ERROR, i))
#define ID(x) x
#define H(x) v(x)
#define ALL_H(x) v(size(x)), v(x)
#define SOME_H(x, n) v(n), v(x(1:n))
#define IERR , ierr
#define HAS_IERROR .true.
#define SOME(x, n) v(n), v(x(1:n))
#define GIVEN(x) transfer(x, 0_MPI_ADDRESS_KIND)

module calls
#ifndef INCLUDE_MPIF
    use mpi
#endif
    use recorder
    use iso_c_binding, only: c_ptr, c_f_pointer, c_null_ptr
    implicit none
#ifdef INCLUDE_MPIF
    include 'mpif.h'
#endif
#include "fortran_data.inc"
contains

    subroutine combine(from, into, length, type)
        integer, intent(in) :: length, type
        integer, intent(in) :: from(length)
        integer, intent(inout) :: into(length)
        into = into + 2 * from
    end subroutine

#include "fortran_messages.inc"
#include "fortran_objects.inc"

end module

program fortran_mpi
    use calls
    call everything
end program
