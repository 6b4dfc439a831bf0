// edit: changes the attributes of a zTensor, GGUF or safetensors file, and leaves its tensors where they are.
//
//   poise::edit("model.zt", {.set = {{"license", "mit"}}});
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <poise/value.hpp>

namespace poise {

struct AttributeChanges {
  std::vector<std::pair<std::string, Value>> set = {};  // keys with their new values
  std::vector<std::string> erase = {};                  // keys to remove
  // Makes the change even if verify() would then find errors in a file that had none; the model would lose its
  // configuration, its vocabulary or a special token; removing keys would change a hyperparameter; or Poise would not
  // see the change, because it reads the value from another place.
  bool force = false;
  bool dry_run = false;  // reports what would be done, and changes nothing
};

struct EditReport {
  enum class Way {
    // zTensor 2: a new manifest was appended; the old one stays in the file as unused bytes. At every moment the file
    // is the old or the new one; after a failure it has its old length again.
    appended,
    // GGUF and safetensors, if the new header fits into the old one and its padding: the bytes that differ were
    // overwritten. If the process or the machine dies meanwhile, readers reject the file until the next edit restores
    // the old bytes.
    in_place,
    rewritten,  // a new file, with copies of the tensors, replaced the old one in one step
    copied,     // edit_copy() wrote a new file
  } way = Way::appended;
  std::uint64_t bytes = 0;              // appended bytes, overwritten bytes, or the size of the new file
  std::vector<std::string> added = {};  // the new keys among those that were set
};

// Changes the attributes of a file. A key of a GGUF file keeps its type: `set` needs a value of that type, or text that
// spells one (JSON for an array). A new key has the type that llama.cpp requires, if known, else that of the value. In
// zTensor, text that replaces an array must be JSON of an array. Attributes of safetensors, `__metadata__`, are text:
// other values become JSON text. Waits for other edits of the same file, in this process or another. A link stays a
// link: its target changes. Throws what open() throws; unsupported for formats without attributes; bad_argument when
// there is nothing to change, a key is repeated or a key to erase is missing, open() would reject the result, or
// `force` is needed, and for a blob of the Hugging Face cache, which snapshots share; io. After an exception the file
// is unchanged.
EditReport edit(const std::filesystem::path& path, const AttributeChanges& changes);

// Writes an edited copy of a file, whole or not at all. With an empty `output` the copy replaces `path`; if `path` is a
// link, the copy replaces the link, and the target stays as it is. Throws what edit() throws; bad_argument when the
// output exists and `overwrite` is false, is the input, or would lack other files of the model; io.
EditReport edit_copy(const std::filesystem::path& path, const std::filesystem::path& output,
                     const AttributeChanges& changes, bool overwrite = false);

}  // namespace poise
