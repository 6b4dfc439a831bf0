# The warnings every target of Poise is clean of, with g++ and clang++. They are errors where the developers build and not where
# the users do: another compiler finds other things.
option(POISE_WERROR "Treat warnings as errors" OFF)

function(poise_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX,C>:-Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${POISE_WERROR}>:-Werror>>)
endfunction()
