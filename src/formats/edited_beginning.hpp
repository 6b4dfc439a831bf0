// EditedBeginning is an edit that replaces a file's header and keeps the data after it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"

namespace poise {

// Replaces the header of a file. If the new header is as long as the old one, commit() overwrites the file from the
// first to the last byte that differs. Otherwise it writes the new header and the old data to a file that replaces the
// old one.
class EditedBeginning : public PreparedEdit {
 public:
  // `header` is everything before the data in the new file. `old_data` is the offset of the data in the input.
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
