! Opens a file that is not there, and goes on.
program missing_file
  use mpi
  implicit none
  integer :: error, class, file
  call MPI_INIT(error)
  file = MPI_FILE_NULL
  call MPI_FILE_OPEN(MPI_COMM_SELF, '/nowhere/to/be/found', MPI_MODE_RDONLY, MPI_INFO_NULL, file, error)
  call MPI_ERROR_CLASS(error, class, error)
  print *, class == MPI_ERR_NO_SUCH_FILE, file == MPI_FILE_NULL
  call MPI_FINALIZE(error)
end program missing_file
