// Writes blobs' decoded bytes to sinks, and streams, compares and hashes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include <poise/blob.hpp>

#include "io/meter.hpp"
#include "io/sink.hpp"
#include "pack/digest.hpp"

namespace poise {

// Writes the blob's bytes. Without a hasher, the file system copies stored bytes where possible. All threads compute
// the bytes of a seekable view in chunks, up to a fixed number of chunks ahead of the one that is written. `hasher`
// (may be null) gets all bytes in order; `item` names the blob for the meter. Returns false if another process writes
// the blob: `hasher` gets no bytes then. Throws what the blob, the sink and the meter throw.
bool write_blob(const Blob& blob, Sink& sink, Meter& meter, std::string_view item, Hasher* hasher = nullptr);
// Writes a blob as write_blob() does, but each process passes all bytes to the sink and to `hasher`, because later
// bytes of the file depend on them, such as the CRC-32 of a member.
void write_whole_blob(const Blob& blob, Sink& sink, Meter& meter, std::string_view item, Hasher& hasher);

// Passes the decoded bytes to `consume`, in chunks and in order, on the calling thread.
void stream_chunks(const Blob& blob, const std::function<void(std::span<const std::byte>)>& consume);

// Returns true if the decoded bytes are equal. Stops at the first difference, and uses constant memory.
bool have_same_bytes(const Blob& a, const Blob& b);

// Returns the XXH3-64 of the first 64 KiB, or of all bytes if there are fewer.
std::uint64_t hash_beginning(const Blob& blob);

}  // namespace poise
