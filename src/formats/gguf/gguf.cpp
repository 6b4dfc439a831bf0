#include "formats/gguf/gguf.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/types.hpp"
#include "formats/registry.hpp"
#include "io/extents.hpp"
#include "model/card.hpp"
#include "model/unused_bytes.hpp"
#include "tensor/block_layout.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

bool sniff(const Input& input) {
  const auto bytes = read_first_bytes(input, gguf::kMagic.size());
  return std::ranges::equal(bytes, std::as_bytes(std::span(gguf::kMagic)));
}

}  // namespace

const Format kGguf = {
    .info = {"gguf", "GGUF, the files of llama.cpp", ".gguf"},
    .options = {.align = Alignments{.usual = gguf::kUsualAlignment, .least = gguf::kLeastAlignment},
                .shard_size = true},
    .holds_bf16 = true,
    .holds_layout = [](const LayoutType& type) { return &type == &layouts::blocks; },
    .weights = WeightReader::llama_cpp,
    .requires_output = gguf::requires_output,
    .make_f32_test = gguf::make_f32_test,
    .sniff = sniff,
    .read = gguf::read,
    .prepare = gguf::prepare,
    .audit = gguf::audit,
    .make_attribute = gguf::make_attribute,
    .edit = gguf::edit,
    .list_keys = gguf::list_keys,
    .has_transposed_blocks = gguf::has_transposed_blocks,
    .read_adapter = gguf::read_adapter,
};

}  // namespace poise

namespace poise::gguf {

namespace {

class FileAudit {
 public:
  FileAudit(SourcePtr source, std::vector<Finding>& findings) : source_(std::move(source)), findings_(findings) {
    HeaderReader header(*source_);
    header.read_metadata([&](std::string_view key, MetadataValue& value) {
      if (key == kAlignmentKey) alignment_ = value.read_unsigned().value_or(kUsualAlignment);
      if (key == kTokens) warn_of_repeated_tokens(value);
      if (value.type() == ValueType::array && value.item_type() == ValueType::array)
        findings_.push_back({Severity::warning,
                             fmt::format("{}: it holds arrays in an array: llama.cpp refuses the file", key),
                             source_->name(), value.position()});
    });
    header.read_tensors([&](TensorInfo info) {
      offsets_.push_back(info.offset);
      tensors_.push_back(std::move(info));
    });
    header_end_ = header.end();
    data_begin_ = std::min(*checked_align(header_end_, alignment_), source_->size());
    std::ranges::sort(offsets_);
  }

  void add_findings() {
    for (const TensorInfo& info : tensors_) {
      warn_of_control_characters(info);
      if (info.name.size() > kMaxWrittenName)
        warn(info, fmt::format("its name has {} bytes, llama.cpp allows {}, and refuses the file", info.name.size(),
                               kMaxWrittenName));
    }
    warn_of_wrong_order();
    std::vector<FileRange> known = {{0, header_end_}, {source_->size(), source_->size()}};
    for (const TensorInfo& info : tensors_) {
      const std::uint64_t begin = data_begin_ + info.offset;
      known.push_back({begin, begin + count_tensor_bytes(info)});
    }
    find_unused_bytes(source_, std::move(known), std::array{alignment_}, findings_);
  }

 private:
  static constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

  // Warns of tokens with the same text, because llama.cpp exits when it reads them. Empty texts are allowed, because
  // llama.cpp names such tokens itself.
  void warn_of_repeated_tokens(MetadataValue& value) {
    std::unordered_map<std::string, std::size_t> first_with;
    std::size_t id = 0;
    std::string first;
    std::size_t more = 0;
    const std::uint64_t at = value.position();
    value.visit_texts([&](std::string_view text) {
      if (const auto [found, is_new] = first_with.try_emplace(std::string(text), id); !is_new && !text.empty()) {
        more += first.empty() ? 0 : 1;
        if (first.empty())
          first = fmt::format("tokens {} and {} have the same text, {}", found->second, id, to_json(Value(text)));
      }
      ++id;
    });
    if (first.empty()) return;
    findings_.push_back({Severity::warning,
                         fmt::format("{}: {}{}: llama.cpp exits when it loads the file", kTokens, first,
                                     more == 0 ? "" : fmt::format(", and {} more repeat a text", more)),
                         source_->name(), at});
  }

  void warn(const TensorInfo& info, const std::string& problem) {
    findings_.push_back(
        {Severity::warning, fmt::format("tensor {}: {}", info.name, problem), source_->name(), info.position});
  }

  // Returns the size of the tensor's data; for a type of unknown size, the number of bytes up to the next tensor or the
  // end of the file.
  std::uint64_t count_tensor_bytes(const TensorInfo& info) const {
    if (const auto bytes = count_stored_bytes(info.type, element_count(info.shape).value_or(0))) return *bytes;
    const auto next = std::ranges::upper_bound(offsets_, info.offset);
    return (next == offsets_.end() ? source_->size() - data_begin_ : *next) - info.offset;
  }

  void warn_of_control_characters(const TensorInfo& info) {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    const auto found = std::ranges::find_if(info.name, is_control);
    if (found == info.name.end()) return;
    warn(info, *found == 0 ? std::string("its name holds a NUL, where other programs cut it off")
                           : fmt::format("its name holds the control character 0x{:02x}",
                                         static_cast<unsigned>(static_cast<unsigned char>(*found))));
  }

  // Warns of tensors at the same offset, and of the first tensor whose data begin before the end of a tensor that the
  // header lists earlier, because llama.cpp requires the header's order.
  void warn_of_wrong_order() {
    std::map<std::uint64_t, const TensorInfo*> first_at;
    const TensorInfo* early = nullptr;
    std::size_t more = 0;
    std::uint64_t end = 0;  // the end of the tensors so far
    for (const TensorInfo& info : tensors_) {
      const std::uint64_t bytes = count_tensor_bytes(info);
      const auto [other, is_first] = bytes > 0 ? first_at.emplace(info.offset, &info) : std::pair(first_at.end(), true);
      if (!is_first) {
        warn(info, fmt::format("it is at the offset of tensor {}, {}: llama.cpp refuses the file", other->second->name,
                               info.offset));
      } else if (info.offset < end) {
        more += early != nullptr ? 1 : 0;
        if (early == nullptr) early = &info;
      }
      end = std::max(end, info.offset + bytes);
    }
    if (early == nullptr) return;
    const std::string others = more == 0   ? ""
                               : more == 1 ? ", and so do those of another one"
                                           : fmt::format(", and so do those of {} others", more);
    warn(*early, fmt::format("its data precede those of a tensor that the header lists before it{}: llama.cpp refuses "
                             "the file",
                             others));
  }

  SourcePtr source_;
  std::vector<Finding>& findings_;
  std::uint64_t alignment_ = kUsualAlignment;
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint64_t> offsets_;  // the offsets of the tensors, ascending
  std::uint64_t header_end_ = 0;
  std::uint64_t data_begin_ = 0;
};

bool is_known_layout(std::string_view layout) { return find_block_layout(layout).has_value(); }

}  // namespace

std::vector<Finding> audit(const Input& input, const Model& model) {
  std::vector<Finding> findings;
  for (const std::filesystem::path& path : model.origin.files)
    FileAudit(path == input.path ? input.source : Source::open(path, IoMode::read), findings).add_findings();
  // Warns of types that ggml has removed or that Poise does not know, and of blocks whose form in big-endian files ggml
  // does not define.
  warn_of_unknown_types(model, is_known_layout, findings);
  std::ranges::move(check_adapter(model), std::back_inserter(findings));
  return findings;
}

}  // namespace poise::gguf
