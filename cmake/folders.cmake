# One static library per folder of src/. Each links only the folders that its row of the table allows (docs/structure.md),
# so an include across rooms that the table does not have fails to build.

add_library(pl_options INTERFACE)
target_compile_definitions(pl_options INTERFACE _GNU_SOURCE)
target_compile_options(pl_options INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes
  -Wno-missing-field-initializers $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> -fno-math-errno -fno-trapping-math)
target_include_directories(pl_options INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(pl_options INTERFACE m)
if(PL_SANITIZE)
  # Lines are enough for a report: where each variable lies takes as long to find out as all the rest.
  target_compile_options(pl_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer -O1 -g1)
  target_link_options(pl_options INTERFACE -fsanitize=address,undefined)
endif()
if(PL_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PL_FUZZ needs clang: -DCMAKE_C_COMPILER=clang")
  endif()
  # What reads bytes from outside is instrumented; kernels (PL_PLAIN) only read numbers of a plan that was judged.
  set(checks -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow)
  foreach(option IN ITEMS ${checks} -fsanitize=fuzzer-no-link -fno-omit-frame-pointer)
    target_compile_options(pl_options INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:PL_PLAIN>>>:${option}>)
  endforeach()
  target_link_options(pl_options INTERFACE ${checks})
endif()

# A thread has a stack of 256 KiB, which is planned: what is large (a config has 30 kB) is on the heap or in the plan. The
# table of folders and the command are held to it; kernels have a smaller number of their own. Sanitizers widen frames.
set(PL_FRAME_OPTION "")
if(NOT PL_SANITIZE AND NOT PL_FUZZ)
  set(PL_FRAME_OPTION -Wframe-larger-than=24576)
endif()

# pl_folder(<name> SOURCES … MAY_INCLUDE <folder>… [EXTERNAL <target>…])
# What a part of the program may name (parts.cmake) is a library of its own, which the linker script knows by its name.
function(pl_folder name)
  cmake_parse_arguments(arg "" "" "SOURCES;MAY_INCLUDE;EXTERNAL" ${ARGN})
  set(targets pl_${name})
  foreach(part IN LISTS PL_SOURCE_PARTS)
    pl_part_sources(${part} "${arg_SOURCES}" sources)
    if(sources)
      list(REMOVE_ITEM arg_SOURCES ${sources})
      add_library(pl_${name}_${part} STATIC ${sources})
      list(APPEND targets pl_${name}_${part})
    endif()
  endforeach()
  if(NOT arg_SOURCES)
    set(arg_SOURCES ${CMAKE_SOURCE_DIR}/src/base/empty.c)
  endif()
  add_library(pl_${name} STATIC ${arg_SOURCES})
  foreach(target IN LISTS targets)
    target_compile_options(${target} PRIVATE ${PL_FRAME_OPTION})
    target_link_libraries(${target} PUBLIC pl_options PRIVATE ${arg_EXTERNAL})
    foreach(other IN LISTS arg_MAY_INCLUDE)
      target_link_libraries(${target} PUBLIC pl_${other})
    endforeach()
    if(NOT target STREQUAL "pl_${name}") # each calls the other
      target_link_libraries(pl_${name} PUBLIC ${target})
      target_link_libraries(${target} PUBLIC pl_${name})
    endif()
    set_target_properties(${target} PROPERTIES LINK_INTERFACE_MULTIPLICITY 4) # core, a system, its planner, core
    set_property(GLOBAL APPEND PROPERTY PL_FOLDER_TARGETS ${target})
  endforeach()
endfunction()
