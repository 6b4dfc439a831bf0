// Lists of integers as protocol buffers pack them, as elements of a fixed width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/blob.hpp>

#include "syntax/protobuf.hpp"

namespace poise::onnx {

using Places = std::vector<protobuf::Message::Place>;

// How many integers are in these runs of a source. Reads them. Throws invalid_file for a run that ends inside an
// integer.
std::uint64_t count_integers(const Source& source, const Places& places);

// What the elements are.
struct Integers {
  unsigned bytes = 0;  // of one: 1, 2, 4 or 8
  bool is_signed = false;
};

// The integers one after the other, decoded as they are read. Reading throws invalid_file, naming the tensor, where one
// does not fit. Requires: `count` is what count_integers() returns.
BlobPtr make_integer_list_blob(SourcePtr source, Places places, std::uint64_t count, Integers integers,
                               std::string tensor);

}  // namespace poise::onnx
