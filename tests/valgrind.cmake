# The valgrind pass: unit tests again under memcheck, without suppressions. Valgrind hides AVX-512 from cpuid, so kernels
# run at the avx2 level. Left out, with the reason:
#   backend, kernels: heavy arithmetic over every shape takes minutes each at a fiftieth of the speed; the sanitizer tree
#     runs it, and the programs that train whole models bring the kernels here
#   what measures or bounds its own process, arms a seccomp filter or counts page faults: it would measure valgrind
#   what plans thousands of times, or is about the time of planning (fit/test_depth; fit/test_fit goes the same ways): the
#     sanitizer tree runs it
# In the suite it is what memcheck alone can see, numbers that nobody wrote: the whole road once (api/test_host trains in the
# test's own process) and every program that takes two seconds at most. The longer ones, of which the sanitizers see the
# rest, are under the label soak.
set(valgrind_long api/test_compile api/test_damaged_run api/test_prepare api/test_resumed_plan api/test_words base/test_block8 calibrate/test_calibrate
  chat/test_cases chat/test_limits
  calibrate/test_warmth config/test_document config/test_load data/test_bpe_train data/test_initial data/test_loader
  data/test_page_cache data/test_page_draw data/test_page_layout data/test_prepare data/test_pretrained_tokenizers data/test_reading data/test_tokenizer data/test_tokens doctor/test_process
  fit/test_fit grad/test_carried_operators grad/test_image_operators grad/test_operators grad/test_token_operators models/test_operators place/test_place plan/test_check plan/test_memory_refused report/test_plan
  rewrite/test_layer_major rewrite/test_optimizer_state rewrite/test_update_order store/test_block_file store/test_metrics
  store/test_rehearse store/test_safetensors jobs/test_sample fit/test_frames models/test_clouds data/test_preprocess
  data/test_scene data/test_clouds_data systems/test_clouds_prepare systems/test_clouds_synth systems/test_clouds_run
  data/test_texts_index data/test_grammar stream/test_ring_schedules systems/test_capsules_synth api/test_infer
  api/test_compare base/test_quantize data/test_picture_fit data/test_staging pretrained/test_open_model systems/test_convert)
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
  set(label valgrind)
  if(name IN_LIST valgrind_long)
    set(label soak)
  endif()
  set_tests_properties(valgrind/${name} PROPERTIES LABELS ${label} TIMEOUT 900)
endforeach()

# What the fuzzers found, too.
file(GLOB fuzz_folders CONFIGURE_DEPENDS fuzz/regressions/*)
foreach(folder IN LISTS fuzz_folders)
  get_filename_component(thing ${folder} NAME)
  if(IS_DIRECTORY ${folder})
    add_test(NAME valgrind/fuzz_replay/${thing}
      COMMAND ${PL_VALGRIND} -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect
        --errors-for-leak-kinds=definite,indirect --num-callers=24 $<TARGET_FILE:fuzz_${thing}> ${folder})
    set_tests_properties(valgrind/fuzz_replay/${thing} PROPERTIES LABELS valgrind TIMEOUT 900)
  endif()
endforeach()
