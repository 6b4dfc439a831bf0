# The warnings every target of Poise is clean of, with g++ and clang++.
function(poise_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX,C>:-Wall -Wextra -Wconversion -Wshadow -Werror>)
endfunction()
