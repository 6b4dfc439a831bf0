// edit: change the attributes of a zTensor file without touching its tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace poise {

struct AttributeChanges {
  std::vector<std::pair<std::string, std::string>> set;  // key, text; replaces what the key had
  std::vector<std::string> erase;
};

struct EditReport {
  // zTensor 2: a new manifest was appended; the old one stays in the file as bytes that nothing refers to. At every moment of that
  // the file is either what it was or what it will be, and when it fails it is cut back to what it was.
  // zTensor 1.1 and 1.2: the file was written anew and replaced at once; the blobs are copied by the kernel.
  enum class Way { appended, rewritten } way = Way::appended;
  std::uint64_t bytes = 0;  // appended, or of the new file
};

// Waits for other edits of the same file, of this process or another. Throws what open() throws; unsupported for formats
// without attributes; bad_argument when there is nothing to change, a key comes twice or one to erase is not there; io.
EditReport edit(const std::filesystem::path& path, const AttributeChanges& changes);

}  // namespace poise
