! An evolving MPI program from the inside, for Fortran 2008: evoslurm_mpi(3). Compile this file with your own MPI's
! compiler, and link with -levoslurm-mpi -levoslurm. Communicators are those of the module mpi; with mpi_f08, give comm%MPI_VAL.
!
!   use evoslurm_mpi
!   integer :: comm, status
!   integer(c_long_long) :: i
!   type(evos_mpi_change) :: change
!   status = evos_mpi_begin(comm, i)
!   do while (i < steps)
!     call iterate(comm)
!     status = evos_mpi_point(comm, i, change)
!     if (change%due /= 0) then
!       call collect(comm)
!       status = evos_mpi_release(comm, change)
!       if (comm == MPI_COMM_NULL) exit
!       status = evos_mpi_spawn(comm)
!       call receive(comm)
!     end if
!     i = i + 1
!   end do
!   if (comm /= MPI_COMM_NULL) status = evos_mpi_end(comm)
module evoslurm_mpi
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: evos_mpi, evos_mpi_change, evos_mpi_begin, evos_mpi_point, evos_mpi_release, evos_mpi_spawn, evos_mpi_end, &
    evos_mpi_error

  ! Options, 0 is the default: struct evos_mpi.
  type, bind(C) :: evos_mpi
    integer(c_int) :: ranks = 0
    real(c_double) :: every = 0, ahead = 0, timeout = 0, wait = 0
  end type

  ! What evos_mpi_point found: struct evos_mpi_change.
  type, bind(C) :: evos_mpi_change
    integer(c_int) :: due = 0, number, nodes, leaving, leaves
  end type

  interface
    integer(c_int) function c_begin(options, comm, iteration) bind(C, name='evos_mpi_begin_f')
      import; type(evos_mpi), intent(in) :: options; integer(c_int), intent(out) :: comm
      integer(c_long_long), intent(out) :: iteration
    end function
    integer(c_int) function evos_mpi_point(comm, iteration, change) bind(C, name='evos_mpi_point_f')
      import; integer(c_int), value :: comm; integer(c_long_long), value :: iteration; type(evos_mpi_change), intent(out) :: change
    end function
    integer(c_int) function evos_mpi_release(comm, change) bind(C, name='evos_mpi_release_f')
      import; integer(c_int), intent(inout) :: comm; type(evos_mpi_change), intent(in) :: change
    end function
    integer(c_int) function evos_mpi_spawn(comm) bind(C, name='evos_mpi_spawn_f')
      import; integer(c_int), intent(inout) :: comm
    end function
    integer(c_int) function evos_mpi_end(comm) bind(C, name='evos_mpi_end_f')
      import; integer(c_int), intent(inout) :: comm
    end function
    type(c_ptr) function c_error() bind(C, name='evos_mpi_error')
      import
    end function
    integer(c_size_t) function c_strlen(text) bind(C, name='strlen')
      import; type(c_ptr), value :: text
    end function
  end interface

contains

  ! Begins: the communicator of all ranks, and the iteration to go on with.
  integer function evos_mpi_begin(comm, iteration, options) result(status)
    integer(c_int), intent(out) :: comm
    integer(c_long_long), intent(out) :: iteration
    type(evos_mpi), intent(in), optional :: options
    type(evos_mpi) :: none
    if (present(options)) none = options
    status = c_begin(none, comm, iteration)
  end function

  ! Why the last call failed.
  function evos_mpi_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: chars(:)
    type(c_ptr) :: p
    integer :: i
    p = c_error()
    call c_f_pointer(p, chars, [c_strlen(p)])
    allocate (character(size(chars)) :: text)
    do i = 1, size(chars)
      text(i:i) = chars(i)
    end do
  end function
end module
