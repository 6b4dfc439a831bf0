// poise show: prints where a tensor's bytes are, and its numbers, or those of a slice, as NumPy does.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <poise/convert.hpp>

#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/numpy_text.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "codec/block_fields.hpp"
#include "formats/format.hpp"
#include "io/streams.hpp"
#include "ops/conversion.hpp"
#include "tensor/block_layout.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/sparse.hpp"
#include "views/strided.hpp"

namespace poise::cli {
namespace {

struct ShowArguments {
  std::string path;
  std::string tensor;
  std::string slice;
  bool raw = false;
  std::string npy;
  bool force = false;
  ReadOptions read;
};

// Selects elements of a dimension. A single index removes the dimension.
struct Range {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::uint64_t count = 1;
  bool is_index = false;
};

[[noreturn]] void refuse_slice(const std::string& slice, const Shape& shape, std::string_view problem) {
  throw Error(ErrorKind::bad_argument,
              fmt::format("--slice \"{}\" of shape {}: {}", make_printable(slice), poise::to_string(shape), problem));
}

// Parses a range by Python's rules: negative numbers count from the end, and bounds beyond the dimension are cut.
Range parse_range(const std::string& text, std::uint64_t length, const std::string& slice, const Shape& shape) {
  std::vector<std::optional<std::int64_t>> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string_view word = trim_ascii_spaces(std::string_view(text).substr(begin, end - begin));
    numbers.push_back(word.empty() ? std::nullopt : parse_number_text<std::int64_t>(word));
    if ((!word.empty() && !numbers.back()) || numbers.size() > 3)
      refuse_slice(slice, shape, "expected indices, ranges like 0:4 or ::-1, or ..., with commas between them");
    begin = end + 1;
  }
  constexpr std::uint64_t kMost = INT64_MAX;
  const auto size = static_cast<std::int64_t>(std::min(length, kMost));
  const auto count_from_front = [&](std::int64_t index) { return index < 0 ? index + size : index; };
  if (numbers.size() == 1) {
    if (!numbers[0]) refuse_slice(slice, shape, "an index is empty");
    const std::int64_t index = count_from_front(*numbers[0]);
    if (index < 0 || index >= size)
      refuse_slice(slice, shape, fmt::format("index {} is outside a dimension of {}", *numbers[0], length));
    return {index, 1, 1, true};
  }
  const std::int64_t step = numbers.size() == 3 ? numbers[2].value_or(1) : 1;
  if (step == 0) refuse_slice(slice, shape, "a step is 0");
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? size : size - 1;
  const auto cut = [&](std::optional<std::int64_t> index, std::int64_t missing) {
    return index ? std::clamp(count_from_front(*index), lowest, highest) : missing;
  };
  const std::int64_t first = cut(numbers[0], step > 0 ? 0 : size - 1);
  const std::int64_t end = cut(numbers[1], step > 0 ? size : -1);
  const auto distance = static_cast<std::uint64_t>(step > 0 ? std::max<std::int64_t>(end - first, 0)
                                                            : std::max<std::int64_t>(first - end, 0));
  const std::uint64_t stride = get_magnitude(step);
  return {first, step, distance == 0 ? 0 : (distance - 1) / stride + 1};
}

std::vector<Range> parse_slice(const std::string& slice, const Shape& shape) {
  std::vector<std::string> words;
  std::string_view text = trim_ascii_spaces(slice);
  if (text.ends_with(',')) text.remove_suffix(1);
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.emplace_back(trim_ascii_spaces(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  const auto dots = std::ranges::find(words, "...");
  const std::size_t given = words.size() - (dots == words.end() ? 0 : 1);
  if (given > shape.size())
    refuse_slice(slice, shape, fmt::format("it has {}, the tensor {}", format_count(given, "dimension"), shape.size()));
  const auto place = dots == words.end() ? words.end() : words.erase(dots);
  words.insert(place, shape.size() - given, ":");
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < shape.size(); ++i) ranges.push_back(parse_range(words[i], shape[i], slice, shape));
  return ranges;
}

// Returns the elements of the slice, computed when they are read: in their stored type, or as float32 if NumPy does not
// have that type.
Tensor make_slice(const Tensor& tensor, const std::string& slice) {
  const std::vector<Range> ranges = parse_slice(slice, tensor.shape);
  Tensor dense;
  const bool is_float = has_float_elements(tensor);
  const DType dtype =
      is_float || tensor.layout == Layout::dense || is_sparse(tensor) ? find_element_type(tensor) : DType::unknown;
  if (is_float && dtype != DType::f64 && dtype != DType::f32 && dtype != DType::f16) {
    dense = make_dense(tensor.name, tensor.shape, DType::f32, make_dense_blob(tensor, DType::f32));
  } else if (is_float || (dtype != DType::unknown && (is_integer(dtype) || dtype == DType::boolean))) {
    dense = make_dense_tensor(tensor);
  } else {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("tensor {}: it is stored as {}, which Poise cannot decode to real numbers; --raw shows its parts",
                    tensor.name, describe_storage(tensor)));
  }
  const Part& data = dense.require("data");
  Strided place;
  place.item_bytes = info(data.dtype).bits / 8;
  const std::vector<std::int64_t> strides = compute_row_major_strides(dense.shape, place.item_bytes);
  bool is_empty = false;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    is_empty = is_empty || ranges[i].count == 0;
    place.offset += static_cast<std::uint64_t>(ranges[i].first) * static_cast<std::uint64_t>(strides[i]);
    if (ranges[i].is_index) continue;
    place.shape.push_back(ranges[i].count);
    place.strides.push_back(ranges[i].count > 1 ? strides[i] * ranges[i].step : 0);
  }
  if (is_empty) place.offset = 0;
  const Shape shape = place.shape;
  return make_dense(tensor.name, shape, data.dtype, make_strided_blob(data.blob, place));
}

std::string format_dense(const Tensor& tensor) {
  const Part& data = tensor.require("data");
  const std::size_t width = info(data.dtype).bits / 8;
  // A blob that cannot seek would be decoded from its start for each element.
  std::optional<LoadedBlob> loaded;
  if (!data.blob->seekable()) loaded.emplace(data.blob);
  return format_array(tensor.shape, data.dtype, [&](std::span<const std::uint64_t> indices) {
    std::uint64_t element = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) element = element * tensor.shape[i] + indices[i];
    std::vector<std::byte> bytes(width);
    if (loaded) {
      std::ranges::copy(loaded->bytes().subspan(element * width, width), bytes.begin());
    } else {
      data.blob->read(element * width, bytes);
    }
    return bytes;
  });
}

void print_places(const Tensor& tensor) {
  Table table({"part", "type", "file", "offset", "bytes", "encoding"}, {false, false, false, true, true, false});
  for (const Part& part : tensor.parts) {
    const auto at = part.blob->stored();
    table.add({make_printable(part.role), make_printable(part.shown_type()),
               at ? make_printable(at->source->name()) : "-", at ? group_digits(at->offset) : "-",
               group_digits(at ? at->length : part.blob->size()), at ? make_printable(at->encoding) : "-"});
  }
  fmt::print("{}", table.text());
}

// Prints each field of the blocks, such as scales and codes, as an array with a row for each block.
void print_blocks(const Tensor& tensor, const BlockType& type) {
  const Part& data = tensor.require("data");
  const std::uint64_t blocks = data.blob->size() / type.bytes;
  std::uint64_t offset = 0;
  for (const BlockField& field : list_block_fields(type)) {
    const std::uint64_t bytes = info(field.dtype).bits / 8;
    Strided place{.shape = {blocks}, .strides = {static_cast<std::int64_t>(type.bytes)}, .offset = offset};
    place.item_bytes = static_cast<unsigned>(bytes);
    if (field.count > 1) {
      place.shape.push_back(field.count);
      place.strides.push_back(static_cast<std::int64_t>(bytes));
    }
    fmt::print("\n{}\n", field.name);
    const Shape shape = place.shape;
    fmt::print("{}\n",
               format_dense(make_slice(make_dense("", shape, field.dtype, make_strided_blob(data.blob, place)), "")));
    offset += field.count * bytes;
  }
}

// Prints each part as a row of its numbers: codes, scales, indices. Prints ggml's blocks by field.
void print_parts(const Tensor& tensor) {
  if (const BlockType* const type = get_block_type(tensor.layout)) return print_blocks(tensor, *type);
  for (const Part& part : tensor.parts) {
    const DType dtype = part.dtype == DType::unknown || part.dtype == DType::qint8 || part.dtype == DType::qint4 ||
                                info(part.dtype).kind == DTypeKind::complex
                            ? DType::u8
                            : part.dtype;
    const std::uint64_t bits = std::uint64_t{8} * part.blob->size();
    fmt::print("\n{}\n", make_printable(part.role));
    fmt::print("{}\n",
               format_dense(make_slice(make_dense(part.role, {bits / info(dtype).bits}, dtype, part.blob), "")));
  }
}

void write_npy(const Model& input, const Tensor& slice, const ShowArguments& options) {
  Model model;
  model.origin = input.origin;  // so that an output that is one of the input's files is refused
  model.add(slice);
  ConvertOptions convert;
  convert.write.overwrite = options.force;
  const Plan planned = plan(model, "npy", convert);
  if (options.npy != "-") {
    write(planned, options.npy);
    return;
  }
  if (::isatty(STDOUT_FILENO) != 0)
    throw Error(ErrorKind::bad_argument,
                "\"--npy -\" writes an array to standard output, which is a terminal; redirect it to a file or a pipe");
  StreamOutput output(STDOUT_FILENO, "standard output");
  write(planned, output);
}

void show(const ShowArguments& options) {
  const Model model = open_model(options.path, options.read);
  const auto has_name = [&](const Tensor& tensor) { return tensor.name == options.tensor; };
  const auto has_file_name = [&](const Tensor& tensor) { return tensor.name_in_file() == options.tensor; };
  auto found = std::ranges::find_if(model.tensors(), has_name);
  if (found == model.tensors().end()) found = std::ranges::find_if(model.tensors(), has_file_name);
  if (found == model.tensors().end())
    throw Error(ErrorKind::not_found, fmt::format("there is no tensor \"{}\"; poise inspect {} --tensors lists all",
                                                  make_printable(options.tensor), make_printable(options.path)));
  const Tensor& tensor = *found;
  if (!options.npy.empty()) return write_npy(model, make_slice(tensor, options.slice), options);
  const std::string numbers = options.raw ? "" : format_dense(make_slice(tensor, options.slice));
  fmt::print("{} {} {}\n", make_printable(tensor.name), make_printable(describe_stored_type(tensor)),
             poise::to_string(tensor.shape));
  print_places(tensor);
  if (options.raw) return print_parts(tensor);
  fmt::print("\n{}\n", numbers);
}

}  // namespace

void add_show_command(CLI::App& app) {
  const auto options = std::make_shared<ShowArguments>();
  CLI::App* command = app.add_subcommand("show", "Print the numbers of a tensor, and where its bytes are");
  command->add_option("MODEL", options->path, "Model file or directory; - is standard input")->required();
  command->add_option("TENSOR", options->tensor, "Name of the tensor, in Poise or in the file")->required();
  CLI::Option* const slice =
      command->add_option("--slice", options->slice, "A part, as in Python: 0:4,:8 or -1 or ::2,...")
          ->type_name("SLICE");
  CLI::Option* const raw =
      command->add_flag("--raw", options->raw, "Print the parts as they are stored: codes, scales, indices")
          ->excludes(slice);
  CLI::Option* const npy =
      command->add_option("--npy", options->npy, "Write the numbers as a NumPy array; - is standard output")
          ->check(make_nonempty_check())
          ->type_name("FILE")
          ->excludes(raw);
  command->add_flag("--force", options->force, "Replace FILE if it exists")->needs(npy);
  command->callback([options] { show(*options); });
}

}  // namespace poise::cli
