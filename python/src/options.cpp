#include "options.hpp"

#include <array>
#include <limits>
#include <optional>

#include "bytes/number_text.hpp"
#include "ops/option_words.hpp"

namespace poise::python {
namespace {

constexpr std::array kWriteOptions = std::to_array<Option<WriteOptions>>({
    {"compress",
     [](const Given& given, WriteOptions& to) {
       to.zstd_level = parse_zstd_level(given.read_text());
       if (!to.zstd_level) given.refuse("\"zstd\" or \"zstd:LEVEL\"");
     }},
    {"digest",
     [](const Given& given, WriteOptions& to) {
       to.digest = given.read_choice<DigestAlgorithm>({{"xxh3", DigestAlgorithm::xxh3},
                                                       {"sha256", DigestAlgorithm::sha256},
                                                       {"crc32c", DigestAlgorithm::crc32c},
                                                       {"none", DigestAlgorithm::none}});
     }},
    {"align", [](const Given& given, WriteOptions& to) { to.align = given.read_size(); }},
    {"shard_size", [](const Given& given, WriteOptions& to) { to.shard_size = given.read_size(); }},
    {"dialect", [](const Given& given, WriteOptions& to) { to.dialect = given.read_text(); }},
    {"overwrite", [](const Given& given, WriteOptions& to) { to.overwrite = given.read_truth(); }},
});

}  // namespace

std::uint64_t Given::read_size() const {
  if (PyIndex_Check(value_.ptr())) {
    const auto number = py::int_(value_);
    if (number < py::int_(0) || number > py::int_(std::numeric_limits<std::uint64_t>::max())) refuse(kSizeExpected);
  }
  const auto number = py::isinstance<py::str>(value_)
                          ? parse_size(read_text())
                          : std::optional(read<std::uint64_t>("a size: 4096, \"64KiB\", \"2GB\""));
  if (number.value_or(0) == 0) refuse(kSizeExpected);
  return *number;
}

std::vector<std::filesystem::path> Given::read_paths() const {
  std::vector<std::filesystem::path> result;
  for (const py::handle path : read<py::list>("a list of paths"))
    result.push_back(parse_path(py::reinterpret_borrow<py::object>(path)));
  return result;
}

WriteOptions parse_write_options(const py::dict& given) { return parse_options<WriteOptions>(given, kWriteOptions); }

}  // namespace poise::python
