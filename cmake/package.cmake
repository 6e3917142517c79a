# What tools/make-packages.sh needs beyond install.cmake.
option(PL_BUNDLE "Install the libraries that the command links beside its modules: for an archive that runs anywhere" OFF)
if(PL_BUNDLE)
  set(modules ${CMAKE_INSTALL_LIBDIR}/plimsoll)
  file(RELATIVE_PATH from_bin /x/${CMAKE_INSTALL_BINDIR} /x/${modules})
  set_target_properties(plimsoll PROPERTIES INSTALL_RPATH "$ORIGIN/${from_bin}")
  set_target_properties(plimsoll_shared PROPERTIES INSTALL_RPATH "$ORIGIN/plimsoll")
  install(RUNTIME_DEPENDENCY_SET bundled DESTINATION ${modules}
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so") # the C library is the system's
  foreach(library libyaml-0-2 libjansson4 libgomp1) # their licences, where Debian has them
    set(copyright /usr/share/doc/${library}/copyright)
    if(EXISTS ${copyright})
      file(REAL_PATH ${copyright} copyright)
      install(FILES ${copyright} DESTINATION ${CMAKE_INSTALL_DOCDIR}/bundled RENAME ${library})
    endif()
  endforeach()
endif()
