// Compares the models and other inputs of several ranks.
#pragma once

#include <filesystem>
#include <string>

#include <poise/model.hpp>

#include "cluster/communicator.hpp"

namespace poise {

// Throws invalid_file on all ranks if one of them has other headers or another vocabulary.
void require_same_headers(const Model& model, Communicator& ranks);

// Throws invalid_file on all ranks if the file has other bytes on one of them. In a directory, compares the files of an
// adapter. Reads all bytes. Throws io if a file cannot be read.
void require_same_bytes(const std::filesystem::path& path, Communicator& ranks);

// Returns a text with a part's role and type, and the name, shape, layout (with the numbers of an affine one) and
// attributes of its tensor.
std::string describe_part(const Tensor& tensor, const Part& part);

}  // namespace poise
