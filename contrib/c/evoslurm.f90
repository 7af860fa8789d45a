! An evolving job from the inside, for Fortran 2008: evoslurm(3). Compile this file with your own
! compiler (modules are for one compiler alone), and link with -levoslurm.
!
!   use evoslurm
!   type(evos_step), pointer :: step, ended
!   integer :: status
!   status = evos_current(step)
!   do while (status == EVOS_OK)
!     call execute_command_line('evosrun ./amr')
!     ended => step
!     status = evos_next(step, ended=ended)
!     call evos_free(ended)
!   end do
!   if (status /= EVOS_DONE) print *, evos_error()
!
! What it gives is the C library's, to be freed by evos_free; names of nodes are had by evos_node.
module evoslurm
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: evos_step, evos_coming, evos_offer, evos_node, evos_text, evos_next_step, evos_current, evos_next, evos_peek, &
    evos_grow, evos_shrink, evos_wait_event, evos_accept, evos_decline, evos_progress, evos_error, evos_free

  integer, parameter, public :: EVOS_OK = 0, EVOS_DONE = 1, EVOS_ERROR_STATUS = -1, EVOS_REFUSED = -2, EVOS_TIMEOUT = -3

  ! What the job has in a step: struct evos_step.
  type, bind(C) :: evos_step
    integer(c_int) :: job, number, steps, nodes
    type(c_ptr) :: names, drive, note
    integer(c_int) :: parts
    type(c_ptr) :: part, coming
    integer(c_int) :: lost
    type(c_ptr) :: lost_names
    integer(c_int) :: restarts
  end type

  ! The next step, as it is planned: struct evos_coming.
  type, bind(C) :: evos_coming
    integer(c_int) :: number, nodes
    integer(c_long_long) :: at
    integer(c_int) :: arriving, leaving
    type(c_ptr) :: arriving_names, leaving_names
  end type

  ! What a malleable job is offered, or asked for: struct evos_offer.
  type, bind(C) :: evos_offer
    integer(c_int) :: job
    integer(c_long_long) :: id
    type(c_ptr) :: kind
    integer(c_int) :: mandatory, nodes
    type(c_ptr) :: names
    integer(c_int) :: further
    type(c_ptr) :: further_names
    integer(c_int) :: has, seconds
    type(c_ptr) :: why
    integer(c_long_long) :: until
  end type

  interface evos_free
    procedure free_step, free_coming, free_offer
  end interface

  interface
    integer(c_int) function c_current(step) bind(C, name='evos_current')
      import; type(c_ptr), intent(out) :: step
    end function
    integer(c_int) function c_next(ended, release, timeout, step) bind(C, name='evos_next')
      import; type(c_ptr), value :: ended, release; real(c_double), value :: timeout; type(c_ptr), intent(out) :: step
    end function
    integer(c_int) function c_peek(coming) bind(C, name='evos_peek')
      import; type(c_ptr), intent(out) :: coming
    end function
    integer(c_int) function c_grow(nodes, least, lasts, wait, step) bind(C, name='evos_grow')
      import; integer(c_int), value :: nodes, least; type(c_ptr), value :: lasts, wait; type(c_ptr), intent(out) :: step
    end function
    integer(c_int) function c_shrink(nodes, names, lasts, step) bind(C, name='evos_shrink')
      import; integer(c_int), value :: nodes; type(c_ptr), value :: names, lasts; type(c_ptr), intent(out) :: step
    end function
    integer(c_int) function c_wait_event(after, timeout, offer) bind(C, name='evos_wait_event')
      import; integer(c_long_long), value :: after; real(c_double), value :: timeout; type(c_ptr), intent(out) :: offer
    end function
    integer(c_int) function c_accept(offer, nodes, step) bind(C, name='evos_accept')
      import; type(c_ptr), value :: offer; integer(c_int), value :: nodes; type(c_ptr), intent(out) :: step
    end function
    integer(c_int) function c_decline(offer) bind(C, name='evos_decline')
      import; type(c_ptr), value :: offer
    end function
    integer(c_int) function c_progress(fraction) bind(C, name='evos_progress')
      import; real(c_double), value :: fraction
    end function
    type(c_ptr) function c_error() bind(C, name='evos_error')
      import
    end function
    subroutine c_free(given) bind(C, name='evos_free')
      import; type(c_ptr), value :: given
    end subroutine
    integer(c_size_t) function c_strlen(text) bind(C, name='strlen')
      import; type(c_ptr), value :: text
    end function
  end interface

contains

  ! The step that the job is in.
  integer function evos_current(step) result(status)
    type(evos_step), pointer, intent(out) :: step
    type(c_ptr) :: p
    status = c_current(p)
    call to_step(p, step)
  end function

  ! Ends the step, the present one if none is given, and waits for the nodes of the next.
  integer function evos_next(step, ended, release, timeout) result(status)
    type(evos_step), pointer, intent(out) :: step
    type(evos_step), intent(in), target, optional :: ended
    character(*), intent(in), optional :: release
    real(c_double), intent(in), optional :: timeout
    character(kind=c_char), allocatable, target :: list(:)
    type(c_ptr) :: p, from
    real(c_double) :: seconds
    from = c_null_ptr
    if (present(ended)) from = c_loc(ended)
    seconds = 0
    if (present(timeout)) seconds = timeout
    call to_c(list, release)
    status = c_next(from, pointer_to(list), seconds, p)
    call to_step(p, step)
  end function

  ! The next step as it is planned at the moment; EVOS_DONE in the last.
  integer function evos_peek(coming) result(status)
    type(evos_coming), pointer, intent(out) :: coming
    type(c_ptr) :: p
    status = c_peek(p)
    nullify (coming)
    if (c_associated(p)) call c_f_pointer(p, coming)
  end function

  ! The step after this one; not associated in the last.
  function evos_next_step(step) result(coming)
    type(evos_step), intent(in) :: step
    type(evos_coming), pointer :: coming
    nullify (coming)
    if (c_associated(step%coming)) call c_f_pointer(step%coming, coming)
  end function

  ! Ends the step and begins one with so many more nodes.
  integer function evos_grow(nodes, step, least, lasts, wait) result(status)
    integer, intent(in) :: nodes
    type(evos_step), pointer, intent(out) :: step
    integer, intent(in), optional :: least
    character(*), intent(in), optional :: lasts, wait
    character(kind=c_char), allocatable, target :: long(:), patience(:)
    type(c_ptr) :: p
    integer(c_int) :: lowest
    lowest = 0
    if (present(least)) lowest = least
    call to_c(long, lasts)
    call to_c(patience, wait)
    status = c_grow(int(nodes, c_int), lowest, pointer_to(long), pointer_to(patience), p)
    call to_step(p, step)
  end function

  ! Ends the step and begins one with so many nodes fewer, or without those named.
  integer function evos_shrink(step, nodes, names, lasts) result(status)
    type(evos_step), pointer, intent(out) :: step
    integer, intent(in), optional :: nodes
    character(*), intent(in), optional :: names, lasts
    character(kind=c_char), allocatable, target :: list(:), long(:)
    type(c_ptr) :: p
    integer(c_int) :: count
    count = 0
    if (present(nodes)) count = nodes
    call to_c(list, names)
    call to_c(long, lasts)
    status = c_shrink(count, pointer_to(list), pointer_to(long), p)
    call to_step(p, step)
  end function

  ! Waits until a malleable job is offered nodes or asked for some.
  integer function evos_wait_event(offer, after, timeout) result(status)
    type(evos_offer), pointer, intent(out) :: offer
    integer(c_long_long), intent(in), optional :: after
    real(c_double), intent(in), optional :: timeout
    type(c_ptr) :: p
    integer(c_long_long) :: last
    real(c_double) :: seconds
    last = 0
    if (present(after)) last = after
    seconds = 0
    if (present(timeout)) seconds = timeout
    status = c_wait_event(last, seconds, p)
    nullify (offer)
    if (c_associated(p)) call c_f_pointer(p, offer)
  end function

  ! Takes so many nodes, all if none are given, or gives them back.
  integer function evos_accept(offer, step, nodes) result(status)
    type(evos_offer), intent(in), target :: offer
    type(evos_step), pointer, intent(out) :: step
    integer, intent(in), optional :: nodes
    type(c_ptr) :: p
    integer(c_int) :: count
    count = 0
    if (present(nodes)) count = nodes
    status = c_accept(c_loc(offer), count, p)
    call to_step(p, step)
  end function

  ! Leaves all as it is.
  integer function evos_decline(offer) result(status)
    type(evos_offer), intent(in), target :: offer
    status = c_decline(c_loc(offer))
  end function

  ! Tells which part of its work the application has done.
  integer function evos_progress(fraction) result(status)
    real(c_double), intent(in) :: fraction
    status = c_progress(fraction)
  end function

  ! Why the last call failed.
  function evos_error() result(text)
    character(:), allocatable :: text
    text = evos_text(c_error())
  end function

  ! A name of an array of names, from 1: evos_node(step%names, 1).
  function evos_node(names, i) result(name)
    type(c_ptr), intent(in) :: names
    integer, intent(in) :: i
    character(:), allocatable :: name
    type(c_ptr), pointer :: all(:)
    call c_f_pointer(names, all, [i])
    name = evos_text(all(i))
  end function

  ! A string of C: evos_text(step%drive).
  function evos_text(p) result(text)
    type(c_ptr), intent(in) :: p
    character(:), allocatable :: text
    character(kind=c_char), pointer :: chars(:)
    integer :: i
    call c_f_pointer(p, chars, [c_strlen(p)])
    allocate (character(size(chars)) :: text)
    do i = 1, size(chars)
      text(i:i) = chars(i)
    end do
  end function

  subroutine free_step(step)
    type(evos_step), pointer, intent(inout) :: step
    if (associated(step)) call c_free(c_loc(step))
    nullify (step)
  end subroutine

  subroutine free_coming(coming)
    type(evos_coming), pointer, intent(inout) :: coming
    if (associated(coming)) call c_free(c_loc(coming))
    nullify (coming)
  end subroutine

  subroutine free_offer(offer)
    type(evos_offer), pointer, intent(inout) :: offer
    if (associated(offer)) call c_free(c_loc(offer))
    nullify (offer)
  end subroutine

  subroutine to_step(p, step)
    type(c_ptr), intent(in) :: p
    type(evos_step), pointer, intent(out) :: step
    nullify (step)
    if (c_associated(p)) call c_f_pointer(p, step)
  end subroutine

  ! A string for C; none is not allocated.
  subroutine to_c(chars, text)
    character(kind=c_char), allocatable, intent(out) :: chars(:)
    character(*), intent(in), optional :: text
    integer :: i
    if (.not. present(text)) return
    allocate (chars(len_trim(text) + 1))
    do i = 1, len_trim(text)
      chars(i) = text(i:i)
    end do
    chars(size(chars)) = c_null_char
  end subroutine

  function pointer_to(chars) result(p)
    character(kind=c_char), allocatable, intent(in), target :: chars(:)
    type(c_ptr) :: p
    p = c_null_ptr
    if (allocated(chars)) p = c_loc(chars)
  end function
end module
