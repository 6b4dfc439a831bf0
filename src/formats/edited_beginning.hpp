// EditedBeginning is an edit that replaces a file's header and keeps the data after it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"

namespace poise {

// Edits the beginning of a file. If the new header is as long as the old one, overwrites its bytes from the first to
// the last that differs. Otherwise writes the header to a new file, and copies the data there.
class EditedBeginning : public PreparedEdit {
 public:
  // Requires: the data begin at `old_data` in the input.
  EditedBeginning(const Input& input, std::span<const std::byte> header, std::uint64_t old_data,
                  std::vector<std::string> added);

  SourcePtr make_edited_source() const override;
  EditReport report() const override;
  void commit(const std::filesystem::path& path) override;

 protected:
  const std::filesystem::path& path() const { return input_.path; }
  // Returns true if the file begins with other bytes than the new header.
  bool changes_header() const;

 private:
  bool is_in_place() const;
  // Returns the new header's bytes from the first to the last that differs from the file; empty if none differs.
  std::span<const std::byte> find_changed_bytes() const;

  Input input_;
  SourcePtr header_;
  std::uint64_t old_data_;
};

}  // namespace poise
