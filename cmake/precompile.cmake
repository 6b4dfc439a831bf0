# Compiles headers that most files include once for a target. The preset dev turns this off, so that a file that does
# not include one of them fails to compile.
function(poise_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cstddef> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
        <string_view> <utility> <vector>
    <fmt/format.h> <poise/error.hpp> <poise/model.hpp> ${ARGN})
endfunction()
