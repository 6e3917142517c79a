cmake_policy(VERSION 3.25)
# Writes FILE, a source that says of which commit SOURCE is: cmake -DSOURCE=… -DFILE=… -P commit.cmake
# `git archive` has written it into commit.txt; in a checkout git is asked; else it is not known, and empty. A changed
# checkout says so ("-dirty"). The file is only written where that is news, so that nothing is built again without need.
file(STRINGS ${SOURCE}/cmake/commit.txt archived LIMIT_COUNT 1)
set(commit "")
if(archived MATCHES "^[0-9a-f]+")
  set(commit ${CMAKE_MATCH_0})
elseif(EXISTS ${SOURCE}/.git) # and not that of a project that this one lies in
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0
    git -C ${SOURCE} describe --always --abbrev=12 --dirty --exclude=* OUTPUT_VARIABLE commit ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(NOT failed STREQUAL "0")
    set(commit "")
  endif()
endif()
file(CONFIGURE OUTPUT ${FILE} CONTENT "extern const char pl_build_commit[];\nconst char pl_build_commit[] = \"@commit@\";\n" @ONLY)
