! A reference log of MPI calls made from Fortran, written by the program itself; see call.h.
!
!   call MPI_Comm_dup(world, copy, ierr)
!   call rec('MPI_Comm_dup', 'comm:c >newcomm:c', [v(world), v(copy)])
!
! The log names things as C does. A layout is made of the C parameters' [MARK]NAME:KIND[*], the values
! follow as words in the same order: a handle, integer or truth value is v(x), a buffer loc(x), a
! status source and tag, a text (z) the next element of `texts`; * is a count and as many elements. Mark >
! is an output; ~ is read and overwritten: its words before the call, then its words after it.
! Without a value: ? of which nothing is said, - where C passes no array, 0 an ignored status.
! Kind y is a status with its error, three words, of a call whose outputs are written in spite of an error.
! Kinds are those of call.h, except that x is counted from 1 here, and from 0 in the log.
!
! Every call is given this module's `ierr` (or none at all), and rec sees to it that MPI has set it.
module recorder
    implicit none
    private
    public :: v, rec, counted, known, indices_from, open_log, close_log, say, said, ROOM, UNTOLD
    public :: ierr, rank, ranks

    interface v
        module procedure integer_word, long_word, logical_word
    end interface

    integer, parameter :: word = selected_int_kind(18), MOST = 256, UNSET = -424242
    integer(word), parameter :: UNTOLD(2) = UNSET  ! the status of a send, which tells nothing
    integer, save :: ierr = UNSET, rank = 0, ranks = 1

    type named
        character :: kind = ' '
        integer(word) :: value = 0
        character(32) :: name = ''
    end type
    type object
        character :: kind = ' '
        integer(word) :: value = 0
        integer :: number = 0, holders = 0
        logical :: receives = .false.
    end type
    type tallied
        character(48) :: name = ''
        integer :: calls = 0
    end type
    type(named), save :: names(MOST)
    type(object), save :: objects(MOST)
    type(tallied), save :: tally(MOST)
    integer, save :: last_number = 0, unit = 0, alike(2) = 0
    integer, save :: first_index = 1
    logical, save :: with_ierror = .true.
    character(:), allocatable, save :: args, out
    integer, parameter :: ROOM = 8192
    character(ROOM), save :: said = ''
    integer, save :: said_bytes = 0

    ! The requests that the call was given, for its statuses; which of them they belong to.
    type(object), save :: passed(MOST)
    integer, save :: passed_count = 0, completed(MOST) = 0, completed_count = -1

contains

    elemental integer(word) function integer_word(value)
        integer, intent(in) :: value
        integer_word = value
    end function

    elemental integer(word) function long_word(value)
        integer(word), intent(in) :: value
        long_word = value
    end function

    elemental integer(word) function logical_word(value)
        logical, intent(in) :: value
        logical_word = merge(1, 0, value)
    end function

    ! ---- names ------------------------------------------------------------------------------

    subroutine known(kind, value, name)  ! a value that MPI itself names
        character, intent(in) :: kind
        integer(word), intent(in) :: value
        character(*), intent(in) :: name
        integer :: i
        i = findloc(names%kind, ' ', 1)
        names(i) = named(kind, value, name)
    end subroutine

    ! The index of a request that is the first. MPICH's mpi_f08 counts from 0, as C does.
    subroutine indices_from(first)
        integer, intent(in) :: first
        first_index = first
    end subroutine

    integer function find_name(kind, value) result(found)
        character, intent(in) :: kind
        integer(word), intent(in) :: value
        do found = 1, MOST
            if (names(found)%kind == kind .and. names(found)%value == value) return
        end do
        found = 0
    end function

    integer function find_object(kind, value) result(found)
        character, intent(in) :: kind
        integer(word), intent(in) :: value
        do found = 1, MOST
            if (objects(found)%kind == kind .and. objects(found)%value == value) return
        end do
        found = 0
    end function

    subroutine made(kind, value, receives)
        character, intent(in) :: kind
        integer(word), intent(in) :: value
        logical, intent(in) :: receives
        integer :: i, other
        if (find_name(kind, value) > 0) return
        other = find_object(kind, value)
        if (other > 0 .and. kind /= 'q') then
            objects(other)%holders = objects(other)%holders + 1
            return
        end if
        last_number = last_number + 1
        if (other > 0) alike = [objects(other)%number, last_number]
        i = findloc(objects%kind, ' ', 1)
        objects(i) = object(kind, value, last_number, 1, receives)
    end subroutine

    subroutine freed(number)
        integer, intent(in) :: number
        integer :: i
        do i = 1, MOST
            if (objects(i)%kind == ' ' .or. objects(i)%number /= number) cycle
            objects(i)%holders = objects(i)%holders - 1
            if (objects(i)%holders == 0) objects(i) = object()
        end do
    end subroutine

    ! ---- values as JSON ---------------------------------------------------------------------

    function decimal(value) result(text)
        integer(word), intent(in) :: value
        character(:), allocatable :: text
        character(24) :: room
        write (room, '(i0)') value
        text = trim(room)
    end function

    function quoted(value) result(text)
        character(*), intent(in) :: value
        character(:), allocatable :: text
        integer :: i
        text = '"'
        do i = 1, len_trim(value)
            if (value(i:i) == '"' .or. value(i:i) == '\') text = text // '\'
            text = text // value(i:i)
        end do
        text = text // '"'
    end function

    function shown(kind, value, element) result(text)
        character, intent(in) :: kind
        integer(word), intent(in) :: value
        integer, intent(in) :: element
        character(:), allocatable :: text
        character(20) :: room
        character(*), parameter :: LETTERS = 'cptonefwmq'
        character(10), parameter :: KINDS(10) = [character(10) :: 'comm', 'group', 'type', 'op', 'info', &
            'errhandler', 'file', 'win', 'message', 'request']
        character :: at
        integer(word) :: number
        integer :: i
        at = kind
        if (kind == 'v') at = 'q'
        i = find_name(at, value)
        if (kind == 'x') then
            i = find_name('u', value)
            ! MPICH's mpif.h adds 1 to MPI_UNDEFINED, too.
            if (i == 0) i = find_name('u', value - 1)
        end if
        if (kind == 'x') then
            completed(element) = int(value) - first_index + 1
            completed_count = element
        end if
        if (i > 0) then
            text = quoted(names(i)%name)
        else if (kind == 'x') then
            text = decimal(value - first_index)
        else if (kind == 'l') then
            text = trim(merge('true ', 'false', value /= 0))
        else if (kind == 'a' .or. kind == 'b') then
            write (room, '(z0)') value
            do i = 1, len_trim(room)
                if (room(i:i) >= 'A') room(i:i) = achar(iachar(room(i:i)) + 32)
            end do
            text = '"0x' // trim(room) // '"'
        else if (index(LETTERS, at) > 0) then
            i = find_object(at, value)
            number = 0
            if (i > 0) number = objects(i)%number
            ! Of requests with one handle, the one that the call was given, or has just made.
            if (at == 'q' .and. passed_count > 0) number = passed(element)%number
            if (at == 'q' .and. alike(2) > 0) number = alike(2)
            text = '"' // trim(KINDS(index(LETTERS, at))) // ':' // decimal(number) // '"'
        else
            text = decimal(value)
        end if
    end function

    function shown_status(source, tag, element) result(text)
        integer(word), intent(in) :: source, tag
        integer, intent(in) :: element
        character(:), allocatable :: text
        integer :: i
        logical :: sent
        i = element
        if (completed_count >= 0) i = completed(element)
        sent = .false.
        if (i >= 1 .and. i <= passed_count) sent = passed(i)%number > 0 .and. .not. passed(i)%receives
        if (sent .or. source == UNSET) then
            text = '{"any":true}'
        else
            text = '{"source":' // shown('r', source, 1) // ',"tag":' // shown('g', tag, 1) // '}'
        end if
    end function

    subroutine put(into, name, value)
        character(:), allocatable, intent(inout) :: into
        character(*), intent(in) :: name, value
        if (len(into) > 0) into = into // ','
        into = into // '"' // name // '":' // value
    end subroutine

    ! ---- calls ------------------------------------------------------------------------------

    subroutine counted(function)
        character(*), intent(in) :: function
        integer :: i
        i = findloc(tally%name, function, 1)
        if (i == 0) i = findloc(tally%calls, 0, 1)
        tally(i) = tallied(function, tally(i)%calls + 1)
    end subroutine

    subroutine rec(function, layout, words, texts)
        character(*), intent(in) :: function, layout
        integer(word), intent(in), optional :: words(:)
        character(*), intent(in), optional :: texts(:)
        character(:), allocatable :: rest, name, before
        character :: mark, kind
        integer :: at, next_text, colon, count, n
        logical :: array, failed, unwritten
        call counted(function)
        failed = ierr /= 0 .and. ierr /= UNSET
        unwritten = failed .and. index(layout, ':y') == 0
        if (with_ierror .and. ierr == UNSET) call say(function // ' has not set ierror')
        args = ''
        out = ''
        rest = layout
        at = 1
        next_text = 1
        passed_count = 0
        completed_count = -1
        alike = 0
        do while (len_trim(rest) > 0)
            rest = trim(adjustl(rest))
            mark = ' '
            if (index('>~', rest(1:1)) > 0) mark = rest(1:1)
            colon = index(rest, ':')
            name = rest(merge(1, 2, mark == ' '):colon - 1)
            kind = rest(colon + 1:colon + 1)
            rest = rest(colon + 2:) // ' '
            array = rest(1:1) == '*'
            if (array) rest = rest(2:)
            before = 'null'
            select case (kind)
            case ('?')
                before = '{"any":true}'
            case ('0')
                before = '{"ignored":true}'
            case ('-')
            case ('z')
                before = quoted(texts(next_text))
                next_text = next_text + 1
            case default
                count = 1
                if (array) then
                    count = int(words(at))
                    at = at + 1
                end if
                n = count * merge(3, merge(2, 1, kind == 's'), kind == 'y')
                if (mark == '~') then
                    call note(kind, words(at:at + n - 1))
                    call put(args, name, values(kind, array, words(at:at + n - 1)))
                    at = at + n + merge(1, 0, array)
                    call note_end(kind, words(at:at + n - 1))
                else if (mark == '>' .and. .not. failed) then
                    call note_made(kind, words(at:at + n - 1))
                end if
                before = values(kind, array, words(at:at + n - 1))
                at = at + n
            end select
            if (mark == ' ') call put(args, name, before)
            if (mark /= ' ' .and. .not. unwritten) call put(out, name, before)
        end do
        if (failed) then
            write (unit, '(9a)') &
                '{"fn":"', function, '","args":{', args, '},"out":{', out, '},"error":', decimal(v(ierr)), '}'
        else
            write (unit, '(7a)') '{"fn":"', function, '","args":{', args, '},"out":{', out, '}}'
        end if
        if (alike(1) > 0) write (unit, '(5a)') &
            '{"shared":["request:', decimal(v(alike(1))), '","request:', decimal(v(alike(2))), '"]}'
        ierr = UNSET
    end subroutine

    function values(kind, array, words) result(text)
        character, intent(in) :: kind
        logical, intent(in) :: array
        integer(word), intent(in) :: words(:)
        character(:), allocatable :: text, at
        integer :: i
        text = ''
        if (kind == 's') then
            do i = 1, size(words) / 2
                if (i > 1) text = text // ','
                text = text // shown_status(words(2 * i - 1), words(2 * i), i)
            end do
        else if (kind == 'y') then
            do i = 1, size(words) / 3
                if (i > 1) text = text // ','
                at = shown_status(words(3 * i - 2), words(3 * i - 1), i)
                if (ierr == 0 .or. ierr == UNSET) then  ! no errors to tell
                    text = text // at
                    cycle
                end if
                if (index(at, 'any') > 0) at = '{'  ! a send's tells of no message
                if (len(at) > 1) at(len(at):) = ','
                text = text // at // '"error":' // decimal(words(3 * i)) // '}'
            end do
        else
            do i = 1, size(words)
                if (i > 1) text = text // ','
                text = text // shown(kind, words(i), i)
            end do
        end if
        if (array) text = '[' // text // ']'
    end function

    subroutine note(kind, words)  ! what the call is given and may end
        character, intent(in) :: kind
        integer(word), intent(in) :: words(:)
        integer :: i, j
        passed_count = size(words)
        do i = 1, size(words)
            passed(i) = object()
            do j = 1, MOST
                if (objects(j)%kind /= kind .or. objects(j)%value /= words(i)) cycle
                if (any(passed(:i - 1)%number == objects(j)%number)) cycle
                passed(i) = objects(j)
                exit
            end do
        end do
    end subroutine

    subroutine note_end(kind, words)
        character, intent(in) :: kind
        integer(word), intent(in) :: words(:)
        integer :: i
        do i = 1, size(words)
            if (find_name(kind, words(i)) > 0 .and. passed(i)%number > 0) call freed(passed(i)%number)
        end do
        if (kind /= 'q') passed_count = 0
    end subroutine

    subroutine note_made(kind, words)
        character, intent(in) :: kind
        integer(word), intent(in) :: words(:)
        integer :: i
        if (index('cptonefwmqv', kind) == 0) return
        do i = 1, size(words)
            call made(merge('q', kind, kind == 'v'), words(i), kind == 'v')
        end do
    end subroutine

    ! ---- beginning and end ------------------------------------------------------------------

    subroutine open_log(ierror)
        logical, intent(in) :: ierror
        character(4096) :: path
        with_ierror = ierror
        call get_command_argument(1, path)
        if (len_trim(path) == 0) path = '/dev/null'
        if (path /= '/dev/null') path = trim(path) // '.' // decimal(v(rank))
        open (newunit=unit, file=path, action='write', status='unknown', recl=65536)
    end subroutine

    subroutine say(text, numbers)  ! a result: what must be the same with and without ampl
        character(*), intent(in) :: text
        integer(word), intent(in), optional :: numbers(:)
        character(:), allocatable :: line
        integer :: i
        line = 'rank ' // decimal(v(rank)) // ': ' // text
        if (present(numbers)) then
            do i = 1, size(numbers)
                line = line // ' ' // decimal(numbers(i))
            end do
        end if
        line = line // new_line('a')
        if (said_bytes + len(line) > ROOM) error stop 'fortran_record.f90: too much is said'
        said(said_bytes + 1:said_bytes + len(line)) = line
        said_bytes = said_bytes + len(line)
    end subroutine

    ! Rank 0 prints what everyone said, `all`, since launchers mix the lines of several ranks.
    subroutine close_log(all)
        character(ROOM), intent(in) :: all(:)
        integer :: i
        do i = 1, merge(ranks, 0, rank == 0)
            write (*, '(a)', advance='no') trim(all(i))
        end do
        call counted('MPI_Finalize')
        write (unit, '(a)') '{"fn":"MPI_Finalize","args":{},"out":{}}'  ! which is next
        write (unit, '(3a)', advance='no') '{"rank":', decimal(v(rank)), ',"counts":{'
        do i = 1, findloc(tally%calls, 0, 1) - 1
            if (i > 1) write (unit, '(a)', advance='no') ','
            write (unit, '(4a)', advance='no') '"', trim(tally(i)%name), '":', decimal(v(tally(i)%calls))
        end do
        write (unit, '(a)') '}}'
        close (unit)
    end subroutine

end module
