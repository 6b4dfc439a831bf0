#include "target.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "family/check.hpp"
#include "memory_watch.hpp"

namespace poise::fuzz {
namespace {

constexpr std::uint64_t kSpareBytes = 64 << 20;

void read_part(const Part& part) {
  std::vector<std::byte> piece(64 << 10);
  const auto stream = part.blob->stream();
  std::uint64_t left = std::min(kMostBytes, part.blob->size());
  while (left > 0) {
    const std::size_t got =
        stream->read(std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()))));
    if (got == 0) report("a blob has fewer bytes than its size");
    left -= got;
  }
}

// Reads the last bytes and the first ones: reads in any order must work, too.
void read_ends(const Part& part) {
  if (part.blob->size() == 0 || part.blob->size() > kMostBytes || !part.blob->seekable()) return;
  std::byte last{};
  std::byte first{};
  part.blob->read(part.blob->size() - 1, std::span(&last, 1));
  part.blob->read(0, std::span(&first, 1));
}

class Scratch {
 public:
  Scratch() {
    const std::filesystem::path memory = "/dev/shm";
    const auto parent = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    path_ = parent / fmt::format("poise-fuzz-{}", ::getpid());
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

void report(std::string_view finding) {
  std::fprintf(stderr, "FINDING: %.*s\n", static_cast<int>(finding.size()), finding.data());
  std::abort();
}

void expect_answer(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) report(error.what());
  } catch (const std::exception& error) {
    report(fmt::format("an exception that is not an Error: {}", error.what()));
  }
}

void expect_sound(std::size_t input_bytes, const std::function<void()>& body) {
  const MemoryWatch watch(4 * input_bytes + kSpareBytes);
  expect_answer(body);
}

SourcePtr make_source(Bytes bytes, std::string name) {
  return Source::from_memory(std::vector<std::byte>(bytes.begin(), bytes.end()), std::move(name));
}

void use_all(const Vocabulary& vocabulary) {
  expect_answer([&] {
    const Tokenizer tokenizer(vocabulary);
    expect_answer([&] { tokenizer.encode("Once upon a time\n<s> caf\xc3\xa9 \xf0\x9f\x99\x82 \xff"); });
    std::vector<TokenId> ids;
    for (std::size_t id = 0; id < std::min<std::size_t>(vocabulary.size(), 64); ++id)
      ids.push_back(static_cast<TokenId>(id));
    expect_answer([&] { tokenizer.decode(ids); });
  });
}

void use_all(const Vocabulary& vocabulary, std::string_view text) {
  use_all(vocabulary);
  const Tokenizer tokenizer(vocabulary);
  const auto ids = tokenizer.encode_with_special(text);
  for (const SpecialTokens special : {SpecialTokens::hidden, SpecialTokens::shown}) {
    TextStream stream(tokenizer, special);
    std::string pieces;
    for (const TokenId id : ids) pieces += stream.add(id);
    pieces += stream.finish();
    if (pieces != tokenizer.decode(ids, special))
      report("decoding token by token gives another text than decoding all at once");
  }
}

void use_all(const Model& model) {
  to_json(card_to_attributes(model.card), 2);
  to_json(model.attributes);
  if (model.config) to_json(config_to_attributes(*model.config, model.card.model_type));
  check_consistency(model);
  if (model.vocabulary) use_all(*model.vocabulary);
  for (const Tensor& tensor : model.tensors()) {
    to_json(tensor.attributes);
    to_string(tensor.shape);
    for (const Part& part : tensor.parts) {
      expect_answer([&] { read_part(part); });
      expect_answer([&] { read_ends(part); });
    }
  }
}

const std::filesystem::path& get_scratch_directory() {
  static const Scratch scratch;
  return scratch.path();
}

void write_file(const std::filesystem::path& path, Bytes bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) report(fmt::format("cannot write {}", path.string()));
}

void put_file(const std::filesystem::path& path, std::string_view text) {
  if (text.empty()) {
    std::filesystem::remove(path);
  } else {
    write_file(path, bytes_of(text));
  }
}

std::vector<std::string_view> split(Bytes bytes, std::size_t count) {
  constexpr char kSeparator = 0x1e;
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string_view> texts(count);
  for (std::string_view& text : texts) {
    text = rest.substr(0, rest.find(kSeparator));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
  }
  return texts;
}

}  // namespace poise::fuzz
