# No target of Poise has these warnings with g++ and clang++. They are errors for developers, but not for users, whose
# compilers may find others.
option(POISE_WERROR "Treat warnings as errors" OFF)

function(poise_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX,C>:-Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${POISE_WERROR}>:-Werror>>)
  # At -O3 these warn about std::string's own code if a literal is converted to one (GCC bug 105329).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE
      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict>)
  endif()
endfunction()
