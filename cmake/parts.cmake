# The parts of the program that a process which runs a plan may leave out: it neither reads them nor is charged for them
# (src/base/parts.h). What belongs to a part is a static library of its own, whose name ends like the part's; a linker
# script puts what comes from these into sections aligned to pages, and names where they begin and end. A file that is
# named nowhere here is held by every process. A file that is called nevertheless costs page faults, and what is measured
# is more than was planned: tests/budget would see it.

# Paths of src/, * for anything but a slash.
set(PL_SOURCE_PARTS planner ref images rollout clouds capsules hybrid pretrained)
set(PL_PART_planner
  grad/*.c rewrite/*.c plan/place/*.c plan/recompute/*.c calibrate/*.c export/*.c doctor/*.c storage/*.c
  layers/*.c models/[^mhf]*.c models/fno_operator.c models/mlp.c fit/[^c]*.c fit/candidate.c
  api/about.c api/advise*.c api/certify.c api/compare*.c api/compile*.c api/doctor.c api/export*.c api/fit.c api/infer.c
  api/report_runs.c
  api/results*.c api/room.c api/starts.c api/storage*.c api/survey.c api/verify*.c api/watch.c api/witness.c api/work_left.c
  config/document.c config/help.c config/json_schema.c config/override.c plan/copy.c
  report/account.c report/advice.c report/compare*.c report/components.c report/fit*.c report/html*.c report/json.c
  report/map.c report/peak.c report/plan*.c report/programs.c report/training*.c report/validated.c
  report/work.c show/*html*.c show/chart*.c show/plot.c
  systems/*_page*.c systems/*_synth.c systems/*_prepare.c systems/chain_stages.c systems/inputs.c systems/preparation.c
  systems/stages.c systems/outputs.c systems/show_facts.c systems/trainings*.c systems/convert*.c
  pretrained/written.c pretrained/shards.c pretrained/*_write.c data/text/tokenizer_gguf_write.c
  data/clouds/scene.c data/arrays/arrays_prepare.c data/text/bpe_train.c data/text/words_train.c data/text/prepare.c
  data/text/tokenizer_write.c data/text/judged_make.c data/pages/texts_prepare.c data/pages/texts_gather.c texts/[^elu]*.c)
set(PL_PART_ref kernels/ref/*.c)
# What has to do with pictures and fields, which no model of tokens does.
set(PL_PART_images
  backend/capsule.c backend/carry.c backend/channel*.c backend/convolution*.c backend/modulation.c backend/patches.c
  backend/pool.c backend/rollout.c backend/spectrum.c backend/bind_capsule.c backend/bind_channel*.c
  backend/bind_convolution.c backend/bind_modulation.c backend/bind_patches.c backend/bind_rollout.c
  backend/bind_spectrum.c store/block_[^f]*.c)
set(PL_PART_rollout systems/rollout*.c data/fields/*.c jobs/rollout*.c)
set(PL_PART_clouds systems/clouds*.c systems/arrays.c data/clouds/*.c data/arrays/*.c)
set(PL_PART_capsules systems/capsules*.c data/pages/*.c jobs/encode*.c)
set(PL_PART_hybrid systems/hybrid*.c models/hybrid*.c)
set(PL_PART_pretrained systems/pretrained*.c pretrained/*.c chat/*.c jobs/chat.c jobs/score.c jobs/prompt_cache.c
    data/text/judged.c)

# pl_part_sources(<part> <list of sources> <variable>): those of the list that the part names.
function(pl_part_sources part sources variable)
  set(found "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/src ${source})
    foreach(pattern IN LISTS PL_PART_${part})
      string(REPLACE "." "\\." regex ${pattern})
      string(REPLACE "*" "[^/]*" regex ${regex})
      if(path MATCHES "^${regex}$")
        list(APPEND found ${source})
        break()
      endif()
    endforeach()
  endforeach()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# pl_leave_out_parts(<target>): links it so that parts can be left out. Where the linker does not take the script, all of
# the program is held.
function(pl_leave_out_parts target)
  file(STRINGS ${CMAKE_SOURCE_DIR}/src/base/parts.def rows REGEX "^PL_PART_ROW")
  set(code "")
  set(constants "")
  set(zeros "")
  foreach(row IN LISTS rows)
    string(REGEX MATCH "[(]([a-z0-9_]+)[)]" ignored "${row}")
    set(part ${CMAKE_MATCH_1})
    foreach(kind code constants zeros)
      set(begin "pl_part_${part}_${kind} = .; *libpl_*_${part}.a:")
      set(end ". = ALIGN(4096); pl_part_${part}_${kind}_end = .;")
      if(kind STREQUAL "code")
        string(APPEND code "  .text.pl_${part} : ALIGN(4096) { ${begin}(.text .text.*) ${end} }\n")
      elseif(kind STREQUAL "constants")
        string(APPEND constants "  .rodata.pl_${part} : ALIGN(4096) { ${begin}(.rodata .rodata.*) ${end} }\n")
      else()
        string(APPEND zeros "  .bss.pl_${part} (NOLOAD) : ALIGN(4096) { ${begin}(.bss .bss.*) ${end} }\n")
      endif()
    endforeach()
  endforeach()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/parts.ld)
  file(CONFIGURE OUTPUT ${script} CONTENT [[
SECTIONS
{
@code@}
INSERT BEFORE .text;
SECTIONS
{
@constants@}
INSERT BEFORE .rodata;
SECTIONS
{
@zeros@}
INSERT BEFORE .bss;
SECTIONS
{
  .pl_unwind_end : { pl_unwind_end = .; }
}
INSERT AFTER .eh_frame;
]] @ONLY)
  set(options -Wl,-T,${script} -Wl,-z,now)
  include(CheckCSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${options})
  check_c_source_compiles("int main(void) { return 0; }" PL_LINKER_TAKES_PARTS)
  if(PL_LINKER_TAKES_PARTS AND NOT PL_SANITIZE)
    target_link_options(${target} PRIVATE ${options})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  endif()
endfunction()
