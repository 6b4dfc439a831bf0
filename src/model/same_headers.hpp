// Compares the models and other inputs of several ranks.
#pragma once

#include <filesystem>
#include <string>

#include <poise/model.hpp>

#include "cluster/communicator.hpp"

namespace poise {

// Throws invalid_file on all ranks when one has another model: other headers or another vocabulary.
void require_same_headers(const Model& model, Communicator& ranks);

// Throws invalid_file on all ranks when a file has other bytes on one of them. In a directory, compares the files of an
// adapter. Reads all bytes. Throws io.
void require_same_bytes(const std::filesystem::path& path, Communicator& ranks);

// Returns a text with everything about a part except its bytes.
std::string describe_part(const Tensor& tensor, const Part& part);

}  // namespace poise
