# tilth_package(NAME FILE) unpacks a package that was compiled with --prefix NAME, and makes it a library of that name:
# targets that link it can include NAME.h. Its property TILTH_WEIGHTS is the file that NAME's open() wants.
function(tilth_package name file)
  get_filename_component(archive "${file}" ABSOLUTE BASE_DIR "${CMAKE_BINARY_DIR}")
  if(NOT EXISTS "${archive}")
    message(FATAL_ERROR "tilth_package: there is no package ${archive}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.package")
  file(REMOVE_RECURSE "${folder}")
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${folder}")
  if(NOT EXISTS "${folder}/lib${name}.so")
    message(FATAL_ERROR "tilth_package: ${archive} was not compiled with --prefix ${name}")
  endif()
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${folder}/lib${name}.so" IMPORTED_SONAME lib${name}.so
                        INTERFACE_INCLUDE_DIRECTORIES "${folder}" TILTH_WEIGHTS "${folder}/weights.bin")
endfunction()
