#include "formats/edited_beginning.hpp"

#include <algorithm>
#include <utility>

#include "io/in_place.hpp"
#include "io/sink.hpp"
#include "io/source_range.hpp"

namespace poise {

EditedBeginning::EditedBeginning(const Input& input, std::span<const std::byte> header, std::uint64_t old_data,
                                 std::vector<std::string> added)
    : PreparedEdit(std::move(added)),
      input_(input),
      header_(Source::from_memory({header.begin(), header.end()}, input.path.string())),
      old_data_(old_data) {}

SourcePtr EditedBeginning::make_edited_source() const {
  return make_spliced_source(input_.path.string(), {{header_, 0, header_->size()},
                                                    {input_.source, old_data_, input_.source->size() - old_data_}});
}

EditReport EditedBeginning::report() const {
  if (is_in_place()) return {EditReport::Way::in_place, find_changed_bytes().size()};
  return {EditReport::Way::rewritten, header_->size() + input_.source->size() - old_data_};
}

void EditedBeginning::commit(const std::filesystem::path& path) {
  if (is_in_place()) {
    const std::span<const std::byte> changed = find_changed_bytes();
    const auto offset = static_cast<std::uint64_t>(changed.data() - header_->bytes().data());
    if (!changed.empty()) replace_in_place(path, offset, changed);
    return;
  }
  FileOutput output(path, true);
  output.main().write(header_->bytes());
  output.main().copy(*input_.source, old_data_, input_.source->size() - old_data_);
  output.commit();
}

bool EditedBeginning::changes_header() const { return !find_changed_bytes().empty(); }

bool EditedBeginning::is_in_place() const { return header_->size() == old_data_; }

std::span<const std::byte> EditedBeginning::find_changed_bytes() const {
  const std::span<const std::byte> bytes = header_->bytes();
  std::vector<std::byte> old_bytes(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), input_.source->size())));
  input_.source->read(0, old_bytes);
  const auto first = static_cast<std::size_t>(std::ranges::mismatch(old_bytes, bytes).in1 - old_bytes.begin());
  std::size_t last = bytes.size();
  while (last > first && last <= old_bytes.size() && old_bytes[last - 1] == bytes[last - 1]) --last;
  return bytes.subspan(first, last - first);
}

}  // namespace poise
