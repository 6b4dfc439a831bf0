// The layout of a safetensors file:
//
//   u64            length N of the header
//   N bytes        JSON: {"__metadata__": {text: text}?, name: {"dtype": "F16", "shape": [..], "data_offsets": [begin, end]}, ...}
//   rest           the tensors' bytes; offsets count from here
//
// The tensors fill the rest exactly: no holes, no overlaps, nothing behind the last one.
#include "formats/safetensors/safetensors.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"
#include "formats/metadata.hpp"
#include "formats/refusal.hpp"
#include "io/meter.hpp"
#include "io/source_range.hpp"
#include "model/limits.hpp"
#include "pack/pump.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of its own reader
constexpr std::uint64_t kSizeBytes = 8;                 // of the header's length
constexpr std::uint64_t kAlignment = 8;                 // of the data: that of the widest elements
constexpr std::string_view kMetadata = "__metadata__";

struct Entry {
  std::string name;
  DType dtype = DType::unknown;
  Shape shape;
  std::uint64_t begin = 0;  // from the first byte behind the header
  std::uint64_t end = 0;
  std::uint64_t position = 0;  // in the file, of what the header says of it
};

// Where elements are smaller than a byte, the last byte has to be full.
bool fills_whole_bytes(DType dtype, std::uint64_t elements) { return elements % 8 * info(dtype).bits % 8 == 0; }

class HeaderParser {
 public:
  explicit HeaderParser(std::string path) : path_(std::move(path)) {}

  // Parses the header, which begins at `offset`.
  void parse(std::string_view text, std::uint64_t offset) {
    if (!text.starts_with('{')) fail("JSON", "expected { as the first byte");
    parse_json_members(text, path_, offset, [this](std::string name, Value value, std::uint64_t position) {
      position_ = position;
      if (name == kMetadata) {
        metadata_ = metadata(std::move(value));
      } else {
        if (entries_.size() == kMaxTensors) fail(name, fmt::format("more than {} tensors", kMaxTensors));
        entries_.push_back(entry(std::move(name), value));
      }
    });
  }

  std::vector<Entry> take_entries() { return std::move(entries_); }
  Attributes take_metadata() { return std::move(metadata_); }

 private:
  Entry entry(std::string name, const Value& value) const {
    const auto* map = value.get_if<Attributes>();
    if (map == nullptr) fail(name, "expected an object");
    for (const auto& [key, ignored] : *map) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") fail(name, fmt::format("unknown key \"{}\"", key));
    }
    Entry entry;
    entry.position = position_;
    entry.dtype = dtype(name, *map);
    entry.shape = numbers(name, *map, "shape");
    if (entry.shape.size() > kMaxRank) fail(name, fmt::format("shape: rank {}, at most {} is allowed", entry.shape.size(), kMaxRank));
    const auto offsets = numbers(name, *map, "data_offsets");
    if (offsets.size() != 2) fail(name, "data_offsets: expected [begin, end]");
    entry.begin = offsets[0];
    entry.end = offsets[1];
    entry.name = std::move(name);
    check_size(entry);
    return entry;
  }

  // `__metadata__` is a map of text to text.
  Attributes metadata(Value value) const {
    const auto* map = value.get_if<Attributes>();
    if (map == nullptr) fail(kMetadata, "expected an object");
    for (const auto& [key, item] : *map) {
      if (item.get_if<std::string>() == nullptr) fail(kMetadata, fmt::format("the value of \"{}\" is no text", key));
    }
    return std::move(value).take<Attributes>();
  }

  [[noreturn]] void fail(std::string_view name, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("safetensors: header: {}: {}", name, problem), path_, position_);
  }

  DType dtype(const std::string& name, const Attributes& map) const {
    const Value* value = map.find("dtype");
    const auto* spelling = value == nullptr ? nullptr : value->get_if<std::string>();
    if (spelling == nullptr) fail(name, "dtype: expected text");
    const auto dtype = dtype_from(&DTypeInfo::safetensors, *spelling);
    if (!dtype) throw Error(ErrorKind::unsupported, fmt::format("safetensors: header: {}: dtype \"{}\" is not known", name, *spelling), path_, position_);
    return *dtype;
  }

  std::vector<std::uint64_t> numbers(const std::string& name, const Attributes& map, std::string_view key) const {
    const Value* value = map.find(key);
    const auto* array = value == nullptr ? nullptr : value->get_if<Value::Array>();
    if (array == nullptr) fail(name, fmt::format("{}: expected an array", key));
    std::vector<std::uint64_t> result;
    for (const Value& item : *array) {
      const auto* number = item.get_if<std::uint64_t>();
      if (number == nullptr) fail(name, fmt::format("{}: expected non-negative integers", key));
      result.push_back(*number);
    }
    return result;
  }

  void check_size(const Entry& entry) const {
    if (entry.begin > entry.end) fail(entry.name, fmt::format("data_offsets: begin {} lies behind end {}", entry.begin, entry.end));
    const auto elements = element_count(entry.shape);
    const auto bytes = elements ? packed_bytes(entry.dtype, *elements) : std::nullopt;
    if (!bytes) fail(entry.name, fmt::format("shape {} overflows", to_string(entry.shape)));
    if (*bytes != entry.end - entry.begin) {
      fail(entry.name,
           fmt::format("shape {} of {} needs {} bytes, data_offsets hold {}", to_string(entry.shape), to_string(entry.dtype), *bytes, entry.end - entry.begin));
    }
    if (!fills_whole_bytes(entry.dtype, *elements)) {
      fail(entry.name, fmt::format("shape {} of {} does not fill whole bytes", to_string(entry.shape), to_string(entry.dtype)));
    }
  }

  std::string path_;
  std::uint64_t position_ = kSizeBytes;  // of the member that is being parsed
  std::vector<Entry> entries_;
  Attributes metadata_;
};

// Sorts the entries by place and makes sure that they fill [0, data_bytes) exactly.
void require_gapless(std::vector<Entry>& entries, std::uint64_t header_end, const Source& source) {
  const auto fail = [&](const Entry& entry, std::string_view problem) {
    throw Error(ErrorKind::invalid_file, fmt::format("safetensors: header: {}: {}", entry.name, problem), source.name(), entry.position);
  };
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  const std::uint64_t data_bytes = source.size() - header_end;
  std::uint64_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < position) fail(entry, fmt::format("overlaps the tensor before it: begins at {}, expected {}", entry.begin, position));
    if (entry.begin > position) fail(entry, fmt::format("a hole of {} bytes lies before it", entry.begin - position));
    position = entry.end;
  }
  const std::uint64_t needed = header_end + std::min(position, UINT64_MAX - header_end);
  if (position > data_bytes) {
    throw Error(ErrorKind::invalid_file, fmt::format("safetensors: the file is cut off: it needs {} bytes, has {}", needed, source.size()), source.name(),
                source.size());
  }
  if (position < data_bytes) {
    throw Error(
        ErrorKind::invalid_file,
        fmt::format("safetensors: {} bytes behind the last tensor: expected a file of {} bytes, found {}", data_bytes - position, needed, source.size()),
        source.name(), needed);
  }
}

bool sniff(const Input& input) {
  const auto bytes = first_bytes(input, 9);
  return bytes.size() == 9 && load_le<std::uint64_t>(bytes.data()) <= kMaxHeaderBytes && bytes[8] == std::byte{'{'};
}

Model read(const Input& input, const ReadOptions&) {
  Model model;
  model.origin = {input.path, "safetensors", input.source->size(), {input.path}};
  SafetensorsFile file = read_safetensors(input.source);
  model.attributes = std::move(file.metadata);
  for (; !file.tensors.empty(); file.tensors.pop_front()) model.add(std::move(file.tensors.front()));
  take_text_attributes(model);
  return model;
}

// Only what a tensor is, not how it is packed, decides the spelling.
std::string_view spelling(const Tensor& tensor) {
  if (tensor.layout != Layout::dense) refuse_tensor("safetensors", tensor);
  const DType dtype = tensor.require("data").dtype;
  const std::string_view name = dtype == DType::unknown ? std::string_view() : info(dtype).safetensors;
  if (name.empty()) refuse_tensor("safetensors", tensor);
  if (!fills_whole_bytes(dtype, tensor.elements())) {
    throw Error(ErrorKind::unsupported,
                fmt::format("safetensors cannot hold {}: shape {} of {} does not fill whole bytes", tensor.name, to_string(tensor.shape), name))
        .with({.kind = Remedy::Kind::dtype, .value = "f32 or f16"});
  }
  return name;
}

// A header cannot hold every name that other formats can.
const std::string& writable_name(const Tensor& tensor) {
  if (tensor.name == kMetadata) throw Error(ErrorKind::unsupported, fmt::format("safetensors keeps the name {} for itself; a tensor has it", kMetadata));
  if (!is_utf8(tensor.name)) throw Error(ErrorKind::unsupported, fmt::format("safetensors needs names in UTF-8; \"{}\" is not", tensor.name));
  return tensor.name;
}

// Those of the widest elements first, so that each begins at a multiple of its element's bytes; else in the model's order.
std::vector<const Tensor*> in_written_order(const Model& model) {
  std::vector<const Tensor*> tensors;
  tensors.reserve(model.size());
  for (const Tensor& tensor : model.tensors()) {
    spelling(tensor);  // refuses what has no elements of a known width
    tensors.push_back(&tensor);
  }
  const auto alignment = [](const Tensor* tensor) { return std::max(1U, info(tensor->require("data").dtype).bits / 8U); };
  std::ranges::stable_sort(tensors, std::greater(), alignment);
  return tensors;
}

std::string header_text(const Model& model, const std::vector<const Tensor*>& tensors) {
  std::vector<Attributes::Entry> entries;
  Attributes metadata = text_attributes(model);
  const std::uint64_t cost = reading_cost(metadata);
  if (!metadata.empty()) entries.emplace_back(kMetadata, std::move(metadata));
  std::uint64_t position = 0;
  for (const Tensor* tensor : tensors) {
    const std::string_view dtype = spelling(*tensor);
    Value::Array shape(tensor->shape.begin(), tensor->shape.end());
    const std::uint64_t end = position + tensor->require("data").blob->size();
    entries.emplace_back(writable_name(*tensor), Attributes{{"dtype", dtype}, {"shape", std::move(shape)}, {"data_offsets", Value::Array{position, end}}});
    position = end;
  }
  std::string text = to_json(Attributes::from_unique(std::move(entries)));
  require_readable(cost, text.size());
  text.resize(*checked_align(text.size(), kAlignment), ' ');
  if (text.size() > kMaxHeaderBytes) throw Error(ErrorKind::unsupported, "safetensors: the header would be larger than 100 MB");
  return text;
}

FilePlan plan(const Model& model, const WriteOptions&) {
  std::uint64_t bytes = kSizeBytes + header_text(model, in_written_order(model)).size();
  FilePlan plan;
  for (const Tensor& tensor : model.tensors()) bytes += plan.tensor_bytes.emplace_back(tensor.require("data").blob->size());
  plan.bytes = bytes;
  return plan;
}

void write(const Model& model, Output& output, const WriteOptions& options) {
  const std::vector<const Tensor*> tensors = in_written_order(model);
  const std::string header = header_text(model, tensors);
  std::uint64_t total = 0;
  for (const Tensor& tensor : model.tensors()) total += tensor.size_bytes();
  ByteWriter start;
  start.u64(header.size());
  start.text(header);
  Sink& sink = output.main();
  sink.write(start.bytes());
  Meter meter(options.progress, total);
  for (const Tensor* tensor : tensors) pump(*tensor->require("data").blob, sink, meter, tensor->name);
}

std::vector<std::string> losses(const Model& model, const WriteOptions&) {
  std::vector<std::string> result;
  if (const auto names = attributes_that_are_no_text(model); !names.empty()) {
    result.push_back(fmt::format("safetensors holds text attributes only: {} become JSON text", fmt::join(names, ", ")));
  }
  std::vector<std::string> tensors;
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.attributes.empty()) tensors.push_back(tensor.name);
  }
  if (!tensors.empty()) result.push_back(fmt::format("safetensors cannot hold the attributes of tensors: those of {} are lost", fmt::join(tensors, ", ")));
  return result;
}

}  // namespace

SafetensorsFile read_safetensors(const SourcePtr& source) {
  const SourceRange range(*source);
  ByteReader reader(range, "safetensors");
  const std::uint64_t length = reader.u64("header length");
  if (length > kMaxHeaderBytes) reader.fail("header length", fmt::format("{} bytes, at most {} are allowed", length, kMaxHeaderBytes), 0);
  if (length > reader.remaining()) {
    reader.fail("header length", fmt::format("the file is cut off: it needs at least {} bytes, has {}", length + 8, source->size()), 0);
  }
  const std::string text(reader.text(length, "header"));
  HeaderParser parser(source->name());
  parser.parse(text, reader.position() - length);
  SafetensorsFile file;
  file.metadata = parser.take_metadata();
  std::vector<Entry> entries = parser.take_entries();
  require_gapless(entries, reader.position(), *source);
  for (Entry& entry : entries) {
    BlobPtr blob = make_source_blob(source, reader.position() + entry.begin, entry.end - entry.begin);
    file.tensors.push_back(make_dense(std::move(entry.name), std::move(entry.shape), entry.dtype, std::move(blob)));
  }
  return file;
}

const Format kSafetensors = {
    .info = {"safetensors", "a safetensors file", ".safetensors"},
    .extensions = {},
    .options = {},
    .holds_bf16 = true,
    .sniff = sniff,
    .read = read,
    .write = write,
    .plan = plan,
    .losses = losses,
};

}  // namespace poise
