# What `make deb` and `make dist` (tools/make-packages.sh) pack: what is installed (install.cmake), by CPack.
# One Debian package, not plimsoll, libplimsoll and libplimsoll-dev: one file to copy and one command to install it. Nobody
# packs a program against the library yet; and headers and archive are small beside the command.
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

set(CPACK_PACKAGE_NAME plimsoll)
set(CPACK_PACKAGE_VENDOR "the Plimsoll maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains and runs neural networks inside a memory budget")
set(CPACK_PACKAGE_DESCRIPTION "Plimsoll plans every byte of a training, an encoding or a simulation before the first step.
 What does not fit the limit is refused in second zero; what begins keeps to its
 plan: the peak that is measured is the one that was planned.
 .
 The package has the command, the library with its headers, man page and shell
 completions, and examples with a text to train on (/usr/share/plimsoll/examples).")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian/finish.cmake)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_PACKAGE_FILE_NAME plimsoll-${PROJECT_VERSION}-linux-x86_64) # of the archive

# The release of the package: another one where it alone has changed.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(PL_MAINTAINER "Plimsoll maintainers <plimsoll@users.noreply.example.org>" CACHE STRING "Of the Debian package")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${PL_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS fonts-dejavu-core) # what texts are drawn in
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libyaml-dev, libjansson-dev, pkg-config") # to link the archive
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
include(CPack)
