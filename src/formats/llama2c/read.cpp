// Reads weights and tokenizer.bin of llama2.c; llama2c.hpp has both layouts. Source: export.py and tokenizer.py of
// github.com/karpathy/llama2.c.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "bytes/byte_reader.hpp"
#include "formats/llama2c/llama2c.hpp"
#include "model/limits.hpp"
#include "tensor/group_scheme.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "views/integer_blobs.hpp"
#include "views/strided.hpp"

namespace poise::llama2c {
namespace {

class TensorReader {
 public:
  TensorReader(const SourcePtr& source, const Header& header, Model& model)
      : source_(source), header_(header), model_(model), position_(header.data_begin) {}

  void read() {
    const std::int64_t layers = header_.config.num_hidden_layers;
    for (const FileArray& array : list_arrays(header_)) {
      for (std::int64_t layer = 0; layer < (array.is_of_layers ? layers : 1); ++layer) {
        std::string name =
            array.is_of_layers ? fmt::format("model.layers.{}.{}", layer, array.name) : std::string(array.name);
        read_array(array, std::move(name));
      }
    }
  }

 private:
  BlobPtr make_next_blob(std::uint64_t bytes) {
    BlobPtr blob = make_source_blob(source_, position_, bytes);
    position_ += bytes;
    return blob;
  }

  void read_array(const FileArray& array, std::string name) {
    const std::uint64_t elements = array.rows * array.columns;
    if (header_.version == 2 && array.is_matrix) return add_codes(array, std::move(name));
    const BlobPtr data = make_next_blob(elements * 4);
    if (name.empty()) return;  // the array holds rotary factors, which Poise computes itself
    Shape shape = array.is_matrix ? Shape{array.rows, array.columns} : Shape{array.columns};
    Tensor tensor =
        make_dense(std::move(name), std::move(shape), DType::f32, reorder_rotated_rows(array, data, array.columns * 4));
    tensor.file_name = std::make_shared<const std::string>(array.file_name);
    model_.add(std::move(tensor));
  }

  // Returns the rows of a rotated array with the even rows of each head first, and other arrays unchanged. A row has
  // `bytes` bytes.
  BlobPtr reorder_rotated_rows(const FileArray& array, const BlobPtr& data, std::uint64_t bytes) const {
    if (!array.is_rotated) return data;
    const auto half = static_cast<std::uint64_t>(header_.config.head_dim / 2);
    const auto row = static_cast<std::int64_t>(bytes);
    return make_strided_blob(data, {.shape = {array.rows / (2 * half), 2, half, bytes},
                                    .strides = {2 * static_cast<std::int64_t>(half) * row, row, 2 * row, 1},
                                    .item_bytes = 1});
  }

  // Adds a matrix of codes from -127 to 127, with a scale for each group of a row.
  void add_codes(const FileArray& array, std::string name) {
    const std::uint64_t groups = array.columns / header_.group_size;
    const BlobPtr codes = make_next_blob(array.rows * array.columns);
    const BlobPtr scales = make_next_blob(array.rows * groups * 4);
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = {array.rows, array.columns};
    tensor.attributes = make_byte_code_attributes(header_.group_size, 1, 128);
    tensor.parts.push_back({.role = "packed_weight",
                            .dtype = DType::u8,
                            .blob = make_flipped_signs_blob(reorder_rotated_rows(array, codes, array.columns))});
    tensor.parts.push_back(
        {.role = "scales", .dtype = DType::f32, .blob = reorder_rotated_rows(array, scales, groups * 4)});
    tensor.layout = make_group_layout(read_group_scheme(tensor, GroupWords::zt2));
    tensor.file_name = std::make_shared<const std::string>(array.file_name);
    model_.add(std::move(tensor));
  }

  const SourcePtr& source_;
  const Header& header_;
  Model& model_;
  std::uint64_t position_;
};

void read_vocabulary(const Input& input, const ReadOptions& options, Model& model) {
  const std::filesystem::path path = input.path.parent_path() / "tokenizer.bin";
  const auto warn = [&](std::string why) {
    model.warnings.push_back({Severity::warning, std::move(why), input.path.string(), std::nullopt});
  };
  std::error_code ignored;
  if (!input.has_folder || !std::filesystem::is_regular_file(path, ignored))
    return warn("there is no tokenizer.bin next to the file, so the model has no vocabulary");
  const auto tokens = static_cast<std::uint64_t>(model.config->vocab_size);
  if (tokens > kMaxTokens)
    return warn(fmt::format("vocab_size is {}, but a vocabulary has at most {} tokens, so tokenizer.bin is not read",
                            tokens, kMaxTokens));
  const SourcePtr source = Source::open(path, options.io);
  model.vocabulary = read_tokenizer(source, tokens);
  model.vocabulary->max_length = static_cast<std::int32_t>(model.config->max_position_embeddings);
  model.origin.files.push_back(path);
  model.origin.size += source->size();
}

}  // namespace

Model read(const Input& input, const ReadOptions& options) {
  const SourcePtr& source = input.source;
  ByteReader reader(*source, "llama2c");
  const Header header = read_header(reader);
  const auto size = compute_file_size(header);
  if (!size) reader.fail("header", "the arrays it describes have more than 2^64 bytes", 0);
  if (source->size() < *size)
    reader.fail("size",
                fmt::format("the file is cut off: its header describes {} bytes, it has {}", *size, source->size()),
                source->size());
  if (source->size() > *size)
    reader.fail("size",
                fmt::format("{} bytes after the last array: its header describes {} bytes, it has {}",
                            source->size() - *size, *size, source->size()),
                *size);
  Model model;
  model.origin = {input.path, "llama2c", source->size(), {input.path}};
  model.card.model_type = "llama";
  model.config = header.config;
  TensorReader(source, header, model).read();
  read_vocabulary(input, options, model);
  return model;
}

namespace {

constexpr std::int32_t kUnknown = 0;
constexpr std::int32_t kBegin = 1;
constexpr std::int32_t kEnd = 2;
constexpr std::uint64_t kMaxTokenBytes = 1024;

// Returns the text as SentencePiece spells it.
std::string convert_token_text(std::uint64_t id, std::string_view text) {
  if (id == kUnknown) return "<unk>";
  if (id == kBegin) return "<s>";
  if (id == kEnd) return "</s>";
  std::string result;
  for (const char letter : text) {
    if (letter == ' ') {
      result += kSpaceSymbol;
    } else {
      result += letter;
    }
  }
  return result;
}

TokenType choose_token_type(std::uint64_t id, std::string_view text) {
  if (id == kUnknown) return TokenType::unknown;
  if (id == kBegin || id == kEnd) return TokenType::control;
  return parse_byte_piece(text) ? TokenType::byte : TokenType::normal;
}

}  // namespace

Vocabulary read_tokenizer(const SourcePtr& source, std::uint64_t tokens) {
  ByteReader reader(*source, "tokenizer.bin");
  reader.read_u32("length of the longest token");
  if (tokens > reader.remaining() / 8)
    reader.fail("size", fmt::format("the file is cut off: {} tokens do not fit {} bytes", tokens, source->size()),
                reader.position());
  Vocabulary vocabulary;
  vocabulary.bos_id = kBegin;
  vocabulary.eos_id = kEnd;
  vocabulary.unk_id = kUnknown;
  vocabulary.remove_extra_whitespaces = false;
  vocabulary.reserve(tokens, reader.remaining() - tokens * 8);
  for (std::uint64_t id = 0; id < tokens; ++id) {
    const auto scope = reader.open_scope("token", static_cast<std::int64_t>(id));
    const std::uint64_t at = reader.position();
    const float score = reader.read_f32("score");
    if (!std::isfinite(score)) reader.fail("score", fmt::format("expected a finite number, found {}", score), at);
    const std::uint64_t length_at = reader.position();
    const std::uint32_t length = reader.read_u32("length");
    if (length > kMaxTokenBytes)
      reader.fail("length", fmt::format("{} bytes, at most {} are read", length, kMaxTokenBytes), length_at);
    const std::string text = convert_token_text(id, reader.read_text(length, "text"));
    vocabulary.add(text, score, choose_token_type(id, text));
  }
  if (reader.remaining() > 0)
    reader.fail("size", fmt::format("{} bytes after the last of {} tokens", reader.remaining(), tokens),
                reader.position());
  return vocabulary;
}

}  // namespace poise::llama2c
