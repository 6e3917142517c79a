# What Debian wants other than `make install` puts it: run by CPack on the tree that becomes the package.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root ${CPACK_TEMPORARY_DIRECTORY})
set(doc ${root}/usr/share/doc/plimsoll)
file(REMOVE ${doc}/LICENSE) # copyright names it; Debian has its text
configure_file(${CMAKE_CURRENT_LIST_DIR}/copyright ${doc}/copyright COPYONLY)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where it is set
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(maintainer "${CPACK_DEBIAN_PACKAGE_MAINTAINER}")
file(CONFIGURE OUTPUT ${doc}/changelog.Debian @ONLY CONTENT "plimsoll (@version@) stable; urgency=medium

  * Made of the sources of this version; what has changed in them: changelog.gz.

 -- @maintainer@  @date@
")
file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
file(GLOB archives ${root}/usr/lib/*/*.a ${root}/usr/lib/*.a)
file(GLOB pages ${root}/usr/share/man/man*/*)
foreach(command "gzip;-9n;${doc}/changelog;${doc}/changelog.Debian;${pages}"
    "strip;--strip-debug;--enable-deterministic-archives;${archives}")
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
