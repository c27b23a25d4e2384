# find_package(ampl): the target ampl::ampl has the directory of ampl.h; there is nothing to link.
get_filename_component(ampl_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET ampl::ampl)
  add_library(ampl::ampl INTERFACE IMPORTED)
  set_target_properties(ampl::ampl PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${ampl_prefix}/include")
endif()
