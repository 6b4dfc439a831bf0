// Breaks every rule of GGUF once (the GGUF specification of ggml, and what its own reader checks).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include <poise/format.hpp>

#include "formats/gguf/gguf_file.hpp"
#include "support/bytes.hpp"
#include "support/errors.hpp"
#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

using namespace gguf_test;

constexpr auto kInvalid = ErrorKind::invalid_file;

const std::string kMatrix = std::string(2 * 3 * 4, '\0');
const std::string kBlocks = std::string(18, '\0');

// Returns a file. Entries: 0 architecture, 1 a number, 2 an array of texts. Tensors: 0 f32 [2, 3], 1 q4_0 [1, 32].
std::vector<Entry> entries() {
  return {text_entry("general.architecture", "none"), u32_entry("a.number", 7),
          array_entry("a.list", kText, {text("x"), text("y")})};
}
std::vector<TensorEntry> tensors() { return {{"a.weight", {3, 2}, 0, kMatrix}, {"b.weight", {32, 1}, 2, kBlocks}}; }
ByteFile whole() { return file_of(entries(), tensors()); }

ByteFile with(const Entry& entry) {
  auto all = entries();
  all.push_back(entry);
  return file_of(all, tensors());
}

std::string nested(std::size_t depth) {
  std::string bytes;
  for (std::size_t i = 0; i < depth; ++i) bytes += number(kArray, 4) + number(1, 8);
  return bytes + number(kU8, 4) + number(1, 8) + number(0, 1);
}

const HostileTable kTable("gguf", [] { return whole().bytes(); });

TEST(HostileGguf, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.gguf", whole()); }

// A download may end anywhere.
TEST(HostileGguf, ErrorsForCutFilesSayThatTheyAreCutOff) {
  const std::string bytes = whole().bytes();
  for (std::size_t length = 1; length < bytes.size(); ++length) {
    if (bytes.find_first_not_of('\0', length) == std::string::npos) break;  // padding, which may be missing
    const std::string cut = bytes.substr(0, length);
    EXPECT_THAT(support::error_of([&] { open(support::source(cut, "cut.gguf")); }).message(),
                testing::HasSubstr("the file is cut off"))
        << length << " of " << bytes.size();
  }
}

TEST(HostileGguf, Start) {
  expect_refused("hostile.gguf",
                 std::array{
                     Case{"the magic number is right", [] { return whole().raw("magic", "GGUX"); }, kInvalid, "magic",
                          "magic number: expected \"GGUF\""},
                     Case{"the version is known", [] { return whole().raw("version", number(4, 4)); },
                          ErrorKind::unsupported, "version", "version 4, expected 1 to 3"},
                     Case{"the version is not 0", [] { return whole().raw("version", number(0, 4)); },
                          ErrorKind::unsupported, "version", "version 0"},
                     Case{"the start is whole", [] { return whole().cut("metadata count", 3); }, kInvalid,
                          "metadata count", "metadata count: 8 bytes wanted"},
                     Case{"tensors fit the file", [] { return whole().u64("tensor count", 1000); }, kInvalid,
                          "tensor count", "tensor count: 1000 do not fit"},
                     Case{"their count does not wrap", [] { return whole().u64("tensor count", UINT64_MAX); }, kInvalid,
                          "tensor count", "do not fit"},
                     Case{"metadata fit the file", [] { return whole().u64("metadata count", UINT64_MAX / 2); },
                          kInvalid, "metadata count", "do not fit"},
                 });
}

TEST(HostileGguf, Metadata) {
  expect_refused(
      "hostile.gguf",
      std::array{
          Case{"a key is not empty", [] { return whole().raw("key 1", text("")); }, kInvalid, "key 1",
               "metadata: key: expected 1 to 65535 bytes, found 0"},
          Case{"a key is UTF-8", [] { return whole().raw("key 1", text("\xff")); }, kInvalid, "key 1",
               "key: it is not UTF-8"},
          Case{"a key's length fits", [] { return whole().raw("key 1", number(UINT64_MAX, 8)); }, kInvalid, kAnywhere,
               "key: 18446744073709551615 bytes wanted"},
          Case{"a key comes once", [] { return whole().raw("key 1", text("general.architecture")); }, kInvalid, "key 1",
               "\"general.architecture\" appears twice"},
          Case{"a type is known", [] { return whole().raw("type 1", number(13, 4)); }, kInvalid, "type 1",
               "type: expected 0 to 12, found 13"},
          Case{"a text's length fits", [] { return whole().raw("value 0", number(UINT64_MAX - 3, 8)); }, kInvalid,
               kAnywhere, "bytes wanted"},
          Case{"an item's type is known", [] { return whole().raw("value 2", number(99, 4) + number(0, 8)); }, kInvalid,
               "value 2", "item type: expected 0 to 12, found 99"},
          Case{"items fit", [] { return whole().raw("value 2", number(kU64, 4) + number(std::uint64_t{1} << 61, 8)); },
               kInvalid, kAnywhere, "item count"},
          Case{"texts fit", [] { return whole().raw("value 2", number(kText, 4) + number(std::uint64_t{1} << 32, 8)); },
               kInvalid, kAnywhere, "item count"},
          Case{"nesting is bounded", [] { return whole().raw("value 2", nested(8)); }, kInvalid, kAnywhere,
               "nested deeper than 8"},
          Case{"nesting is bounded however deep", [] { return whole().raw("value 2", nested(100000)); }, kInvalid,
               kAnywhere, "nested deeper than 8"},
          Case{"alignment is not 0", [] { return with(u32_entry("general.alignment", 0)); }, kInvalid, kAnywhere,
               "general.alignment: expected a power of two"},
          Case{"alignment is a power of two", [] { return with(u32_entry("general.alignment", 48)); }, kInvalid,
               kAnywhere, "expected a power of two"},
          Case{"alignment is not huge", [] { return with(u32_entry("general.alignment", 1U << 31U)); }, kInvalid,
               kAnywhere, "expected a power of two up to"},
          Case{"alignment is u32",
               [] {
                 return with({"general.alignment", kText, text("32")});
               },
               kInvalid, kAnywhere, "expected a power of two up to"},
          Case{"a part is one of the parts",
               [] {
                 auto all = entries();
                 all.push_back({"split.no", kU16, number(2, 2)});
                 all.push_back({"split.count", kU16, number(2, 2)});
                 return file_of(all, tensors());
               },
               kInvalid, kAnywhere, "split.no: the file is number 2, counted from 0, of 2"},
          Case{"tokens are texts", [] { return with(array_entry("tokenizer.ggml.tokens", kU8, {"x"})); }, kInvalid,
               kAnywhere, "expected an array of texts"},
          Case{"scores are as many as tokens",
               [] {
                 auto all = entries();
                 all.push_back(array_entry("tokenizer.ggml.tokens", kText, {text("x"), text("y")}));
                 all.push_back(array_entry("tokenizer.ggml.scores", kF32, {f32(0)}));
                 return file_of(all, tensors());
               },
               kInvalid, kAnywhere, "scores: expected one for each of 2 tokens, found 1"},
      });
}

TEST(HostileGguf, Tensors) {
  expect_refused(
      "hostile.gguf",
      std::array{
          Case{"a name is not empty", [] { return whole().raw("name 0", text("")); }, kInvalid, "name 0",
               "name: expected 1 to 1024 bytes, found 0"},
          Case{"a name is not long", [] { return whole().raw("name 0", text(std::string(1025, 'x'))); }, kInvalid,
               "name 0", "name: expected 1 to 1024 bytes, found 1025"},
          Case{"a name is UTF-8", [] { return whole().raw("name 0", text("\xc0\x80")); }, kInvalid, "name 0",
               "name: it is not UTF-8"},
          Case{"a name comes once", [] { return whole().raw("name 1", text("a.weight")); }, kInvalid, "name 1",
               "\"a.weight\" appears twice"},
          Case{"there are four dimensions at most", [] { return whole().raw("rank 0", number(5, 4)); }, kInvalid,
               "rank 0", "dimensions: 5, at most 4"},
          Case{"the elements fit 64 bits", [] { return whole().u64("dimension 0.0", std::uint64_t{1} << 63U); },
               kInvalid, "name 0", "a.weight: shape [2, 9223372036854775808] overflows"},
          Case{"the bytes fit 64 bits",
               [] { return whole().u64("dimension 0.0", std::uint64_t{1} << 62U).u64("dimension 0.1", 1); }, kInvalid,
               "name 0", "overflows"},
          Case{"rows are whole blocks", [] { return whole().u64("dimension 1.0", 48); }, kInvalid, "name 1",
               "rows of 48 elements are not whole blocks of 32 (q4_0)"},
          Case{"the blocks fit 64 bits", [] { return whole().u64("dimension 1.1", std::uint64_t{1} << 58U); }, kInvalid,
               "name 1", "b.weight: "},
          Case{"an offset is aligned", [] { return whole().u64("offset 1", 33); }, kInvalid, "name 1",
               "offset 33 is not a multiple of 32"},
          Case{"an offset is in the file", [] { return whole().u64("offset 1", 1 << 20U); }, kInvalid, "name 1",
               "reach beyond the data, which have 64"},
          Case{"an offset does not wrap", [] { return whole().u64("offset 1", UINT64_MAX - 31); }, kInvalid, "name 1",
               "reach beyond the data"},
          Case{"tensors do not overlap", [] { return whole().u64("offset 1", 0); }, kInvalid, kAnywhere, "overlap"},
          Case{"the data are whole", [] { return whole().cut("data 1", 17); }, kInvalid, "name 1",
               "18 bytes at offset 32 reach beyond the data, which have 49"},
          Case{"the header is whole", [] { return whole().cut("offset 1", 4); }, kInvalid, kAnywhere,
               "tensor 1: offset: 8 bytes wanted"},
          Case{"an unknown type has a place, too",
               [] { return whole().raw("tensor type 1", number(1000, 4)).u64("offset 1", 1 << 20U); }, kInvalid,
               "name 1", "reach beyond"},
      });
}

// Returns a llama whose query matrix has four rows, so that each of 4 heads would have one row.
ByteFile with_heads(std::uint64_t heads) {
  return file_of({text_entry("general.architecture", "llama"), {"llama.attention.head_count", kU64, number(heads, 8)}},
                 {{"blk.0.attn_q.weight", {1, 4}, 0, std::string(16, '\0')}});
}

TEST(HostileGguf, RowsAreHeads) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63U;
  expect_refused("hostile.gguf", std::array{
                                     Case{"heads are said", [] { return with_heads(0); }, kInvalid, "name 0",
                                          "which the configuration lacks"},
                                     Case{"a head has an even number of rows", [] { return with_heads(4); }, kInvalid,
                                          "name 0", "expected 4 heads with an even number of rows each, found 4 rows"},
                                     Case{"rows are whole heads", [] { return with_heads(3); }, kInvalid, "name 0",
                                          "expected 3 heads with an even number of rows each, found 4 rows"},
                                     Case{"twice the heads does not wrap", [] { return with_heads(kHalf); }, kInvalid,
                                          "name 0", "with an even number of rows each, found 4 rows"},
                                     Case{"nor does twice one more", [] { return with_heads(kHalf + 1); }, kInvalid,
                                          "name 0", "with an even number of rows each, found 4 rows"},
                                     Case{"nor does the highest number", [] { return with_heads(UINT64_MAX); },
                                          kInvalid, "name 0", "with an even number of rows each, found 4 rows"},
                                 });
}

ByteFile with_experts(std::uint64_t experts, std::uint64_t columns, std::size_t bytes) {
  return file_of({text_entry("general.architecture", "qwen3moe"), u32_entry("qwen3moe.expert_count", 1)},
                 {{"blk.0.ffn_up_exps.weight", {columns, 1, experts}, 24, std::string(bytes, '\0')}});
}

// A few bytes must not make many tensors.
TEST(HostileGguf, ExpertsAreBounded) {
  expect_refused("hostile.gguf", std::array{
                                     Case{"there are experts", [] { return with_experts(0, 8, 0); }, kInvalid, "name 0",
                                          "0 bytes are too few for 0 experts"},
                                     Case{"experts have bytes", [] { return with_experts(2, 63, 126); }, kInvalid,
                                          "name 0", "126 bytes are too few for 2 experts"},
                                     Case{"experts are not many", [] { return with_experts(4097, 64, 4097 * 64); },
                                          kInvalid, "name 0", "4097 experts, at most 4096"},
                                     Case{"nor are experts of nothing", [] { return with_experts(UINT64_MAX, 0, 0); },
                                          kInvalid, "name 0", "experts, at most 4096"},
                                 });
}

}  // namespace
}  // namespace poise::hostile
