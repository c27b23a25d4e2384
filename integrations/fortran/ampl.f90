! Tell ampl about a Fortran program: regions, metrics, markers; ask whether this rank is traced.
!
! Compile this file with the program and `use ampl`. Nothing to link: the library is looked for once, in the
! running process (with dlsym, which C libraries older than glibc 2.34 have in -ldl), and without ampl every
! call is a test of a pointer. Meanings are those of include/ampl.h; docs/api.md says the rest.
module ampl
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_procpointer, c_funptr, c_int, c_long, &
      c_associated, c_null_char, c_null_ptr, c_ptr
  implicit none
  private

  public :: ampl_region_register, ampl_region_enter, ampl_region_exit
  public :: ampl_region_begin, ampl_region_end
  public :: ampl_metric_register, ampl_metric_add
  public :: ampl_marker, ampl_is_traced, ampl_window

  abstract interface
    function register_hook(name, length) bind(C) result(number)
      import :: c_char, c_int, c_long
      character(kind=c_char), intent(in) :: name(*)
      integer(c_long), value :: length
      integer(c_int) :: number
    end function

    subroutine number_hook(number) bind(C)
      import :: c_int
      integer(c_int), value :: number
    end subroutine

    subroutine add_hook(number, amount) bind(C)
      import :: c_int, c_double
      integer(c_int), value :: number
      real(c_double), value :: amount
    end subroutine

    subroutine plain_hook() bind(C)
    end subroutine

    function int_hook() bind(C) result(answer)
      import :: c_int
      integer(c_int) :: answer
    end function

    function long_hook() bind(C) result(answer)
      import :: c_long
      integer(c_long) :: answer
    end function
  end interface

  interface
    ! The handle NULL means the whole process (RTLD_DEFAULT on Linux).
    function dlsym(handle, symbol) bind(C, name="dlsym") result(address)
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: symbol(*)
      type(c_funptr) :: address
    end function
  end interface

  procedure(register_hook), pointer, save :: region_register => null(), metric_register => null()
  procedure(number_hook), pointer, save :: region_enter => null(), region_exit => null()
  procedure(add_hook), pointer, save :: metric_add => null()
  procedure(plain_hook), pointer, save :: marker => null()
  procedure(int_hook), pointer, save :: is_traced => null()
  procedure(long_hook), pointer, save :: window => null()
  ! Two threads may look at once: both find the same.
  logical, save :: looked = .false.

contains

  subroutine look()
    type(c_funptr) :: found

    found = hook("ampl_fortran_region_register")
    if (c_associated(found)) call c_f_procpointer(found, region_register)
    found = hook("ampl_fortran_metric_register")
    if (c_associated(found)) call c_f_procpointer(found, metric_register)
    found = hook("ampl_region_enter")
    if (c_associated(found)) call c_f_procpointer(found, region_enter)
    found = hook("ampl_region_exit")
    if (c_associated(found)) call c_f_procpointer(found, region_exit)
    found = hook("ampl_metric_add")
    if (c_associated(found)) call c_f_procpointer(found, metric_add)
    found = hook("ampl_marker")
    if (c_associated(found)) call c_f_procpointer(found, marker)
    found = hook("ampl_is_traced")
    if (c_associated(found)) call c_f_procpointer(found, is_traced)
    found = hook("ampl_window")
    if (c_associated(found)) call c_f_procpointer(found, window)
    looked = .true.
  end subroutine

  function hook(name) result(address)
    character(*), intent(in) :: name
    type(c_funptr) :: address

    address = dlsym(c_null_ptr, name // c_null_char)
  end function

  ! The number of the region of that name, above 0; 0 without ampl. Trailing blanks do not count.
  function ampl_region_register(name) result(number)
    character(*), intent(in) :: name
    integer :: number

    if (.not. looked) call look()
    number = 0
    if (associated(region_register)) number = region_register(name, len(name, c_long))
  end function

  subroutine ampl_region_enter(number)
    integer, intent(in) :: number

    if (.not. looked) call look()
    if (associated(region_enter)) call region_enter(int(number, c_int))
  end subroutine

  subroutine ampl_region_exit(number)
    integer, intent(in) :: number

    if (.not. looked) call look()
    if (associated(region_exit)) call region_exit(int(number, c_int))
  end subroutine

  ! The same by name, which is looked up at each call.
  subroutine ampl_region_begin(name)
    character(*), intent(in) :: name

    if (.not. looked) call look()
    if (associated(region_enter)) call region_enter(region_register(name, len(name, c_long)))
  end subroutine

  subroutine ampl_region_end(name)
    character(*), intent(in) :: name

    if (.not. looked) call look()
    if (associated(region_exit)) call region_exit(region_register(name, len(name, c_long)))
  end subroutine

  ! The number of the metric of that name, above 0; 0 without ampl.
  function ampl_metric_register(name) result(number)
    character(*), intent(in) :: name
    integer :: number

    if (.not. looked) call look()
    number = 0
    if (associated(metric_register)) number = metric_register(name, len(name, c_long))
  end function

  subroutine ampl_metric_add(number, amount)
    integer, intent(in) :: number
    real(c_double), intent(in) :: amount

    if (.not. looked) call look()
    if (associated(metric_add)) call metric_add(int(number, c_int), amount)
  end subroutine

  ! A marker, as MPI_PCONTROL with a level of the program's own.
  subroutine ampl_marker()
    if (.not. looked) call look()
    if (associated(marker)) call marker()
  end subroutine

  ! 1 while this rank's open window is in the sample, 0 while it is not, -1 where there is no ampl.
  function ampl_is_traced() result(answer)
    integer :: answer

    if (.not. looked) call look()
    answer = -1
    if (associated(is_traced)) answer = is_traced()
  end function

  ! The number of this rank's open window, from 0; -1 where there is no ampl.
  function ampl_window() result(answer)
    integer(c_long) :: answer

    if (.not. looked) call look()
    answer = -1
    if (associated(window)) answer = window()
  end function
end module
