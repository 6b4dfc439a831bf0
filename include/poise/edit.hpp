// edit: change the attributes of a zTensor, GGUF or safetensors file without touching its tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <poise/value.hpp>

namespace poise {

struct AttributeChanges {
  std::vector<std::pair<std::string, Value>> set;  // replaces the value of the key
  std::vector<std::string> erase;
  // Also if verify() would then find new errors, the model would lose its configuration or vocabulary, or only other
  // programs would see the change.
  bool force = false;
  bool dry_run = false;  // reports what would be done, and changes nothing
};

struct EditReport {
  // zTensor 2: appends a new manifest; the old one stays in the file as unused bytes. At every moment the
  // file is the old or the new one; a failure cuts it back. GGUF and safetensors, if the tensors can stay in
  // place because the new header ends in the old one's padding: overwrites the bytes that differ. If the
  // process or the machine dies meanwhile, readers reject the file until the next edit restores the old
  // bytes. Others: writes a new file and replaces the old one at once; the kernel copies the tensors.
  enum class Way { appended, in_place, rewritten, copied } way = Way::appended;
  std::uint64_t bytes = 0;              // appended, replaced, or of the new file
  std::vector<std::string> added = {};  // the new keys among those that were set
};

// Changes the attributes of a file. A key of a GGUF file keeps its type: `set` needs a value of that type, or text that
// spells one; for an array, JSON. A new key has the type that llama.cpp requires, if known, else the value's. An array
// of zTensor stays an array, too. Attributes of safetensors, `__metadata__`, are text: other values become JSON text.
// Waits for other edits of the same file, of this process or another. A link stays a link: its target changes. Throws
// what open() throws; unsupported for formats without attributes; bad_argument when there is nothing to change, a key
// is repeated or one to erase is missing, the file could not be opened afterwards, or `force` is needed, and for a blob
// of the Hugging Face cache, which snapshots share; io. The file is then unchanged.
EditReport edit(const std::filesystem::path& path, const AttributeChanges& changes);

// Writes an edited copy, whole or not at all; the bytes of the file, and those that it is a link to, stay as they are.
// `output` empty: the copy takes the place of `path`, of the link itself if it is one. Throws what edit() throws;
// bad_argument when the output exists and `overwrite` is false, is the input, or would lack other files of the model;
// io.
EditReport edit_copy(const std::filesystem::path& path, const std::filesystem::path& output,
                     const AttributeChanges& changes, bool overwrite = false);

}  // namespace poise
