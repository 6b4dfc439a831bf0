// pump: moves a blob's decoded bytes into a sink, once and in order.
#pragma once

#include <poise/blob.hpp>

#include "io/digest.hpp"
#include "io/meter.hpp"
#include "io/sink.hpp"

namespace poise {

// Bytes that need no change are copied by the kernel; computed ones are made by all threads, a bounded number of chunks
// ahead of the ordered writer. `hasher` (may be null) sees every byte in order. Throws whatever the blob and sink throw.
void pump(const Blob& blob, Sink& sink, Meter& meter, Hasher* hasher = nullptr);

// The same without a sink: hands each chunk, in order, to `consume`.
void for_each_chunk(const Blob& blob, const std::function<void(std::span<const std::byte>)>& consume);

}  // namespace poise
