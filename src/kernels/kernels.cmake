# Every file of kernels/cpu is compiled once per level with its own flags; PL_SUFFIX names the level in the symbols.
# kernels/ref holds the scalar reference, always built.
file(GLOB kernel_ref_sources CONFIGURE_DEPENDS kernels/*.c kernels/ref/*.c)
file(GLOB kernel_cpu_sources CONFIGURE_DEPENDS kernels/cpu/*.c)
if(NOT kernel_ref_sources)
  set(kernel_ref_sources base/empty.c)
endif()
pl_folder(kernels SOURCES ${kernel_ref_sources} MAY_INCLUDE base)
if(PL_SANITIZE) # half of the time of the backend's tests is in these two
  set_source_files_properties(kernels/ref/gemm.c kernels/ref/attention.c PROPERTIES COMPILE_OPTIONS -O2)
endif()

# Kernels are worth -O3. Under a sanitizer that costs minutes of compiling and finds nothing more; the matrix of compilers
# (tools/run-environments.sh) says itself. Never -O0: every vector that a function ever names would get a place in its
# frame, 1.2 MB of them, which is more than the whole stack of a thread and steps over the guard page behind it.
# Lines alone for the debugger: where every vector lies at every instruction takes as long to find as all the rest.
set(PL_KERNEL_OPTIMIZATION "" CACHE STRING "Optimisation of the kernels (-Og, -O1 to -O3), if not the usual one")
set(kernel_optimization -O3)
set(kernel_debug $<$<CONFIG:RelWithDebInfo>:-g1>)
if(PL_KERNEL_OPTIMIZATION)
  set(kernel_optimization ${PL_KERNEL_OPTIMIZATION})
elseif(PL_SANITIZE OR PL_FUZZ)
  set(kernel_optimization -O1)
elseif(CMAKE_BUILD_TYPE STREQUAL Debug)
  set(kernel_optimization -Og)
endif()
if(NOT (PL_SANITIZE OR PL_FUZZ))
  list(APPEND kernel_optimization $<IF:$<C_COMPILER_ID:GNU>,-Werror=frame-larger-than=16384,-Wframe-larger-than=16384>
    $<$<NOT:$<C_COMPILER_ID:GNU>>:-Werror=frame-larger-than=>)
endif()

# The epilogue of integer products has the same bits at every level, and so have numbers of blocks: there a product and a
# sum are two roundings.
set_source_files_properties(kernels/ref/words.c kernels/cpu/words_finish.c kernels/cpu/gemm_blocks.c
  kernels/cpu/gemm_rounded.c kernels/cpu/gemm_rounded_vnni.c kernels/cpu/encode.c PROPERTIES
  COMPILE_OPTIONS -ffp-contract=off)

# A level is a library of its own, and so are those of its products that a higher level alone calls (cmake/parts.cmake).
function(pl_kernel_library name level sources options)
  add_library(pl_kernels_${name} STATIC ${sources})
  target_link_libraries(pl_kernels_${name} PRIVATE pl_options PUBLIC pl_kernels)
  target_link_libraries(pl_kernels PUBLIC pl_kernels_${name})
  set_target_properties(pl_kernels_${name} PROPERTIES PL_PLAIN ON)
  target_compile_definitions(pl_kernels_${name} PRIVATE PL_SUFFIX=${level} PL_LEVEL_${level}=1)
  target_compile_options(pl_kernels_${name} PRIVATE ${kernel_optimization} ${kernel_debug} -ffp-contract=fast ${options})
  set_property(GLOBAL APPEND PROPERTY PL_FOLDER_TARGETS pl_kernels_${name})
endfunction()

function(pl_kernel_level name)
  set(sources ${kernel_cpu_sources})
  if(name STREQUAL "avx512")
    foreach(above avx512_bf16:_pairs amx:_amx)
      string(REPLACE ":" ";" above ${above})
      list(GET above 1 ending)
      list(GET above 0 above)
      set(theirs ${sources})
      list(FILTER theirs INCLUDE REGEX "${ending}(_bwd)?\\.c$")
      list(FILTER sources EXCLUDE REGEX "${ending}(_bwd)?\\.c$")
      pl_kernel_library(${above} ${name} "${theirs}" "${ARGN}")
    endforeach()
  endif()
  pl_kernel_library(${name} ${name} "${sources}" "${ARGN}")
endfunction()

# A level has its own instructions whatever -march the whole is compiled with: others would round otherwise.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  pl_kernel_level(baseline -march=x86-64)
  pl_kernel_level(avx2 -march=x86-64 -mavx2 -mfma -mf16c)
  pl_kernel_level(avx512 -march=x86-64 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
else()
  pl_kernel_level(baseline)
endif()
