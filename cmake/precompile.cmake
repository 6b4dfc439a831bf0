# Headers that most files include, compiled once for a target. The preset dev leaves it off, so that a file which
# forgets one of them
# is found.
function(poise_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cstddef> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
        <string_view> <utility> <vector>
    <fmt/format.h> <poise/error.hpp> <poise/model.hpp> ${ARGN})
endfunction()
