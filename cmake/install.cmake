# What `make install` puts down: the command, libplimsoll.so and libplimsoll.a, the public headers, a pkg-config file, a
# CMake package, the man page, the shell completions, documents and examples. Every path is relative to the prefix, so that
# `cmake --install build --prefix ANY` and DESTDIR work without a new configuration.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Both libraries are made of the objects of the folders; the command links the folders themselves.
get_property(folder_targets GLOBAL PROPERTY PL_FOLDER_TARGETS)
set(objects "")
foreach(target IN LISTS folder_targets)
  list(APPEND objects $<TARGET_OBJECTS:${target}>)
endforeach()

# While major is 0, another minor may change any interface (version.h).
set(soversion ${PROJECT_VERSION_MAJOR})
if(soversion EQUAL 0)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
add_library(plimsoll_shared SHARED ${objects})
add_library(plimsoll_static STATIC ${objects})
set_target_properties(plimsoll_shared PROPERTIES EXPORT_NAME plimsoll VERSION ${PROJECT_VERSION}
  SOVERSION ${soversion} LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/plimsoll.map)
set_target_properties(plimsoll_static PROPERTIES EXPORT_NAME static)
set_target_properties(plimsoll_shared plimsoll_static PROPERTIES OUTPUT_NAME plimsoll LINKER_LANGUAGE C)
target_link_options(plimsoll_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/plimsoll.map -Wl,--no-undefined)
target_link_libraries(plimsoll_shared PRIVATE pl_options PkgConfig::yaml PkgConfig::jansson OpenMP::OpenMP_C)
# A program that links the archive links these too. Plain names, so that the package does not ask for our CMake targets.
set(PL_PRIVATE_LIBRARIES ${yaml_LIBRARIES} ${jansson_LIBRARIES} ${OpenMP_C_LIB_NAMES} m)
list(REMOVE_DUPLICATES PL_PRIVATE_LIBRARIES)
target_link_libraries(plimsoll_static INTERFACE ${PL_PRIVATE_LIBRARIES})
foreach(library plimsoll_shared plimsoll_static)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

install(TARGETS plimsoll_shared plimsoll_static EXPORT plimsollTargets RUNTIME_DEPENDENCY_SET bundled)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Not with the documents: slim images of Debian leave those out.
file(GLOB examples CONFIGURE_DEPENDS examples/*)
install(FILES ${examples} DESTINATION ${CMAKE_INSTALL_DATADIR}/plimsoll/examples)
install(DIRECTORY include/plimsoll DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
configure_package_config_file(cmake/plimsollConfig.cmake.in plimsollConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(plimsollConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plimsollConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/plimsollConfigVersion.cmake
  DESTINATION ${package_folder})
install(EXPORT plimsollTargets NAMESPACE plimsoll:: DESTINATION ${package_folder})

# The prefix of the pkg-config file is found from where the file lies.
file(RELATIVE_PATH PL_UP_FROM_PC /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
list(TRANSFORM PL_PRIVATE_LIBRARIES PREPEND -l OUTPUT_VARIABLE PL_PRIVATE_FLAGS)
list(JOIN PL_PRIVATE_FLAGS " " PL_PRIVATE_FLAGS)
configure_file(cmake/plimsoll.pc.in plimsoll.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plimsoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET plimsoll)
  install(TARGETS plimsoll RUNTIME_DEPENDENCY_SET bundled)
  # The man page and the completions are what the command itself says, so they cannot fall out of step with it.
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/share/made)
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${CMAKE_SOURCE_DIR}/tools/make-man.sh $<TARGET_FILE:plimsoll> ${CMAKE_CURRENT_BINARY_DIR}/share
      ${PROJECT_VERSION}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS plimsoll ${CMAKE_SOURCE_DIR}/tools/make-man.sh
    COMMENT "Man page and completions" VERBATIM)
  add_custom_target(plimsoll_man ALL DEPENDS ${stamp})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/plimsoll.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/plimsoll.bash RENAME plimsoll OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  set(PL_ZSH_FOLDER ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where zsh finds completions")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/_plimsoll OPTIONAL DESTINATION ${PL_ZSH_FOLDER})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/plimsoll.fish OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
