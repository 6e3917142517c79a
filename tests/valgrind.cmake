# The valgrind pass: unit tests again under memcheck, without suppressions. Valgrind hides AVX-512 from cpuid, so kernels
# run at the avx2 level. Left out, with the reason:
#   backend, kernels: heavy arithmetic over every shape takes minutes each at a fiftieth of the speed; the sanitizer tree
#     runs it, and the programs that train whole models bring the kernels here
#   what measures or bounds its own process, arms a seccomp filter or counts page faults: it would measure valgrind
#   what plans thousands of times, or is about the time of planning (fit/test_depth; fit/test_fit goes the same ways): the
#     sanitizer tree runs it
set(valgrind_without_folders backend kernels)
set(valgrind_without base/test_process base/test_fence run/test_process_plan run/test_process_rules api/test_refused
  api/test_numbers fit/test_depth)

find_program(PL_VALGRIND valgrind)
if(NOT PL_VALGRIND)
  message(STATUS "No valgrind: its pass is skipped")
  return()
endif()

foreach(test IN LISTS tests)
  string(REGEX MATCH "^unit/((.*)/.*)$" is_unit ${test})
  set(name ${CMAKE_MATCH_1})
  if(NOT is_unit OR name IN_LIST valgrind_without OR CMAKE_MATCH_2 IN_LIST valgrind_without_folders)
    continue()
  endif()
  pl_test_command(${test} program words)
  # A leak is what nothing points to any more; blocks that a library's thread pool still holds at exit are not.
  add_test(NAME valgrind/${name}
    COMMAND ${PL_VALGRIND} -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect
      --errors-for-leak-kinds=definite,indirect --num-callers=24 $<TARGET_FILE:${program}> ${words})
  set_tests_properties(valgrind/${name} PROPERTIES LABELS valgrind TIMEOUT 300)
endforeach()
pl_cost(valgrind/fit/test_fit 50)
foreach(test api/test_damaged_run calibrate/test_calibrate plan/test_memory_refused store/test_safetensors store/test_metrics)
  pl_cost(valgrind/${test} 20)
endforeach()

# What the fuzzers found, too.
file(GLOB fuzz_folders CONFIGURE_DEPENDS fuzz/regressions/*)
foreach(folder IN LISTS fuzz_folders)
  get_filename_component(thing ${folder} NAME)
  if(IS_DIRECTORY ${folder})
    add_test(NAME valgrind/fuzz_replay/${thing}
      COMMAND ${PL_VALGRIND} -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect
        --errors-for-leak-kinds=definite,indirect --num-callers=24 $<TARGET_FILE:fuzz_${thing}> ${folder})
    set_tests_properties(valgrind/fuzz_replay/${thing} PROPERTIES LABELS valgrind TIMEOUT 300)
  endif()
endforeach()
