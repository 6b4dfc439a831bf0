// The manifest and footers of a zTensor 2 file that is being written.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

#include "formats/ztensor/zt2_write_blobs.hpp"
#include "io/sink.hpp"

namespace poise::ztensor {

// After the blobs. Throws unsupported for a manifest that readers refuse.
void write_manifest(Sink& sink, std::uint64_t alignment, const Attributes& attributes,
                    const std::vector<StoredTensor>& tensors, const WrittenBlobs& blobs);

// The last bytes of a file; a data shard has no manifest.
void write_footer(Sink& sink, std::uint64_t offset, std::string_view manifest);

}  // namespace poise::ztensor
