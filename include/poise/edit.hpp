// edit: change the attributes of a zTensor or GGUF file without touching its tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <poise/value.hpp>

namespace poise {

struct AttributeChanges {
  std::vector<std::pair<std::string, Value>> set;  // replaces what the key had
  std::vector<std::string> erase;
  // Also where verify() would then find errors and finds none now, the model would lose its configuration or
  // vocabulary, or other programs alone would see the change.
  bool force = false;
};

struct EditReport {
  // zTensor 2: a new manifest was appended; the old one stays in the file as bytes that nothing refers to. At every
  // moment of that the file is either what it was or what it will be, and when it fails it is cut back to what it was.
  // GGUF whose tensors can stay at their place, because the new header ends in the old one's padding: the bytes that
  // differ were written over the old ones. Should the process or the machine die meanwhile, readers refuse the file
  // until the next edit gives it its old bytes again. zTensor 1.1 and 1.2, and other GGUF: the file was written as a
  // whole and replaced at once; the blobs are copied by the kernel.
  enum class Way { appended, in_place, rewritten } way = Way::appended;
  std::uint64_t bytes = 0;              // appended, replaced, or of the new file
  std::vector<std::string> added = {};  // the keys that were set and that the file did not have
};

// A key of GGUF keeps its type: `set` gives it a number of that type, or text that spells one. A new key has the type
// that llama.cpp wants of it, where that is known, else that of the value. Arrays of GGUF are not edited.
// Waits for other edits of the same file, of this process or another. Throws what open() throws; unsupported for
// formats without attributes; bad_argument when there is nothing to change, a key comes twice or one to erase is not
// there, the file could not be opened afterwards, or for what `force` is needed; io. The file is what it was then.
EditReport edit(const std::filesystem::path& path, const AttributeChanges& changes);

}  // namespace poise
