# The valgrind pass: unit tests again under memcheck, without suppressions. Valgrind hides AVX-512 from cpuid, so kernels
# run at the avx2 level. Left out, with the reason:
#   backend, kernels: heavy arithmetic over every shape takes minutes each at a fiftieth of the speed; the sanitizer tree
#     runs it, and the programs that train whole models bring the kernels here
#   what measures or bounds its own process, arms a seccomp filter or counts page faults: it would measure valgrind
#   what plans thousands of times, or is about the time of planning (unit_fit_test_depth; unit_fit_test_fit goes the same
#     ways): the sanitizer tree runs it
set(valgrind_without_folders backend kernels)
set(valgrind_without unit_base_test_process unit_base_test_fence unit_run_test_process_plan unit_run_test_process_rules
  unit_api_test_refused unit_api_test_numbers unit_fit_test_depth)

find_program(PL_VALGRIND valgrind)
if(NOT PL_VALGRIND)
  message(STATUS "No valgrind: its pass is skipped")
  return()
endif()

foreach(source IN LISTS test_sources)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder_path ${source} DIRECTORY)
  get_filename_component(folder ${folder_path} NAME)
  set(target unit_${folder}_${name})
  if(NOT source MATCHES "/unit/" OR target IN_LIST valgrind_without OR folder IN_LIST valgrind_without_folders)
    continue()
  endif()
  # A leak is what nothing points to any more; blocks that a library's thread pool still holds at exit are not.
  add_test(NAME valgrind/${folder}/${name}
    COMMAND ${PL_VALGRIND} -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect
      --errors-for-leak-kinds=definite,indirect --num-callers=24 $<TARGET_FILE:${target}>)
  set_tests_properties(valgrind/${folder}/${name} PROPERTIES LABELS valgrind TIMEOUT 300)
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
