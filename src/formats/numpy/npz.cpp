// Reads and writes a zip archive of arrays (formats/numpy/array.hpp): the member "a.npy" is the array "a".
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "formats/losses.hpp"
#include "formats/numpy/array.hpp"
#include "formats/registry.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "pack/zip.hpp"
#include "pack/zip_writer.hpp"

namespace poise::npz {
namespace {

constexpr std::string_view kExtension = ".npy";

bool holds(const MemberNames& names) {
  return std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(kExtension); });
}

// Returns true for the name of PyTorch's pickle, in small or capital letters, because PyTorch ignores case.
bool is_pickle(std::string_view name) { return to_lower_ascii(name.substr(name.rfind('/') + 1)) == "data.pkl"; }

// Describes an array of an archive: a member and its header.
struct ArrayMember {
  const ZipMember& member;
  std::string name;
  numpy::ArrayHeader header;
  std::uint64_t data = 0;  // the offset of the elements in the decoded member
};

// Inflates the beginning of a member: the header, and usually more.
SourcePtr inflate_start(const ZipArchive& archive, const ZipMember& member) {
  constexpr std::uint64_t kUsual = 16 << 10;
  constexpr std::uint64_t kMost = (1 << 20) + 12;
  for (std::uint64_t count = kUsual;; count = kMost) {
    std::vector<std::byte> bytes(std::min(count, member.bytes));
    archive.make_blob(member)->read(0, bytes);
    if (count == kMost || bytes.size() < 12) return Source::from_memory(std::move(bytes), archive.source()->name());
    const bool is_version_1 = bytes[6] == std::byte{1};  // the header's length has 2 bytes, later 4
    const std::uint32_t length =
        is_version_1 ? load_le<std::uint16_t>(bytes.data() + 8) : load_le<std::uint32_t>(bytes.data() + 8);
    if (length <= kUsual - 12) return Source::from_memory(std::move(bytes), archive.source()->name());
  }
}

// Reads the header of an array. Throws invalid_file.
ArrayMember read_array_member(const ZipArchive& archive, const ZipMember& member) {
  ArrayMember array{member, member.name.substr(0, member.name.size() - kExtension.size()), {}, 0};
  const std::string context = "npz: " + member.name;
  if (!member.deflated) {
    ByteReader reader(*archive.source(), context, member.begin, member.begin + member.bytes);
    array.header = numpy::read_header(reader);
    array.data = reader.position() - member.begin;
    return array;
  }
  try {
    const SourcePtr start = inflate_start(archive, member);
    ByteReader reader(*start, context);
    array.header = numpy::read_header(reader);
    array.data = reader.position();
    return array;
  } catch (const Error& error) {  // the error's offset counts decoded bytes
    throw Error(error.kind(), error.message(), archive.source()->name(), member.begin);
  }
}

std::vector<Finding> check_objects(const ZipArchive& archive, const ArrayMember& array) {
  pytorch::PickleFile data = {.bytes = archive.make_blob(array.member, array.data),
                              .name = array.member.name,
                              .path = archive.source()->name(),
                              .prefix = array.member.name + ": ",
                              .begin = std::nullopt,
                              .header = array.member.header};
  if (!array.member.deflated) data.begin = array.member.begin + array.data;
  return numpy::check_objects(array.header, data);
}

class Reader {
 public:
  Reader(const Input& input, Model& model) : archive_(input.source), model_(model) {}

  void read() {
    for (const ZipMember& member : archive_.members()) {
      if (member.name.ends_with('/') && member.bytes == 0) continue;  // a folder
      if (member.name.ends_with(kExtension)) {
        add_array(read_array_member(archive_, member));
        continue;
      }
      if (is_pickle(member.name)) {
        model_.warnings.push_back(
            {Severity::error, fmt::format("{} is a pickle, which PyTorch runs when it loads this archive", member.name),
             archive_.source()->name(), member.header});
      }
      warn_of_left_out(member, "it is not an array");
    }
    if (first_left_out_ != nullptr && model_.size() == 0 && texts_.empty()) {
      model_.warnings.push_back({Severity::error,
                                 fmt::format("no array is read: {} array{} other elements than numbers and texts",
                                             left_out_, left_out_ == 1 ? " has" : "s have"),
                                 archive_.source()->name(), first_left_out_->header});
    }
    model_.attributes = Attributes::from_unique(std::move(texts_));
  }

 private:
  void add_array(const ArrayMember& array) {
    const ZipMember& member = array.member;
    if (numpy::find_dtype(array.header)) {
      try {
        model_.add(numpy::make_tensor(array.name, array.header, archive_.make_blob(member, array.data)));
      } catch (const Error& error) {
        throw Error(error.kind(), "npz: " + error.message(), archive_.source()->name(), member.begin);
      }
      return;
    }
    if (auto texts = numpy::read_texts(array.header, *archive_.make_blob(member, array.data))) {
      texts_.emplace_back(array.name, *std::move(texts));
      return;
    }
    std::ranges::move(check_objects(archive_, array), std::back_inserter(model_.warnings));
    warn_of_left_out(member, numpy::explain_unsupported_type(array.header));
    if (left_out_++ == 0) first_left_out_ = &member;
  }

  void warn_of_left_out(const ZipMember& member, const std::string& why) {
    model_.warnings.push_back({Severity::warning, fmt::format("{} is left out: {}", member.name, why),
                               archive_.source()->name(), member.header});
  }

  ZipArchive archive_;
  Model& model_;
  std::vector<Attributes::Entry> texts_;
  std::size_t left_out_ = 0;  // the number of arrays that are left out
  const ZipMember* first_left_out_ = nullptr;
};

Model read(const Input& input, const ReadOptions&) {
  Model model;
  model.origin = {input.path, "npz", input.source->size(), {input.path}};
  Reader(input, model).read();
  return model;
}

std::vector<Finding> audit(const Input& input, const Model&) {
  const ZipArchive archive(input.source);
  std::vector<Finding> findings = archive.check_crc32();
  const auto is_array = [](std::string_view name) { return name.ends_with(kExtension); };
  std::ranges::move(pytorch::check_members(archive, is_array), std::back_inserter(findings));
  return findings;
}

// Finds dangerous code in the arrays. kPytorch checks the other members of archives.
std::vector<Finding> find_dangerous_code(const SourcePtr& source) {
  if (find_container_kind({source->name(), source}) != ContainerKind::zip) return {};
  const ZipArchive archive(source);
  std::vector<Finding> findings;
  for (const ZipMember& member : archive.members()) {
    if (member.name.ends_with(kExtension))
      std::ranges::move(check_objects(archive, read_array_member(archive, member)), std::back_inserter(findings));
  }
  return findings;
}

std::string make_member_name(const Tensor& tensor) {
  std::string name = std::string(tensor.name) + std::string(kExtension);
  if (!is_utf8(tensor.name) || !is_zip_name(name))
    throw Error(ErrorKind::unsupported, fmt::format("npz cannot hold {}: archives have no such names", tensor.name));
  return name;
}

// Writes the file. Without a meter, writes zeros instead of elements, which suffices to count bytes.
void write_to(const Model& model, Sink& sink, Meter* meter) {
  ZipWriter archive(sink, numpy::kAlignment);
  const ReadAhead ahead(ReadAhead::list_blobs(
      model.tensors(), [](const Tensor& tensor) -> const Blob& { return *tensor.require("data").blob; }));
  for (std::size_t i = 0; i < model.size(); ++i) {
    const Tensor& tensor = model.tensors()[i];
    const ByteWriter header = numpy::make_header("npz", tensor);
    const Blob& data = ahead[i];
    Crc32& crc32 = archive.begin_member(make_member_name(tensor), header.size() + data.size());
    sink.write(header.bytes());
    crc32.update(header.bytes());
    if (meter != nullptr) {
      write_whole_blob(data, sink, *meter, tensor.name, crc32);
    } else {
      sink.pad(data.size());
    }
    archive.end_member();
  }
  archive.finish();
}

// Throws unsupported for tensors that the file cannot hold, and for two whose members have the same path when the
// archive is unpacked.
void require_arrays(const Model& model) {
  std::unordered_map<std::string, std::string_view> seen;
  for (const Tensor& tensor : model.tensors()) {
    numpy::make_header("npz", tensor);
    const auto [other, is_new] = seen.emplace(normalize_zip_name(make_member_name(tensor)), tensor.name);
    if (!is_new)
      throw Error(ErrorKind::unsupported,
                  fmt::format("npz cannot hold both {} and {}, which have the same path in the archive", other->second,
                              tensor.name));
  }
}

FilePlan plan(const Model& model, const WriteOptions&) {
  require_arrays(model);
  FilePlan plan;
  CountingSink count;
  write_to(model, count, nullptr);
  plan.bytes = count.position();
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

void write(const Model& model, Output& output, const WriteOptions& options) {
  require_arrays(model);
  std::uint64_t total = 0;
  for (const Tensor& tensor : model.tensors()) total += tensor.require("data").blob->size();
  Meter meter(options.progress, total);
  write_to(model, output.main(), &meter);
}

std::vector<std::string> list_losses(const Model& model, const WriteOptions&) {
  return list_metadata_losses(model, "an .npz file");
}

}  // namespace
}  // namespace poise::npz

namespace poise {

const Format kNpz = {
    .info = {"npz", "a NumPy archive of arrays", ".npz"},
    .holds_bf16 = false,
    .container = ContainerKind::zip,
    .holds = npz::holds,
    .read = npz::read,
    .prepare = prepare_with<npz::plan, npz::write, npz::list_losses>,
    .audit = npz::audit,
    .find_dangerous_code = npz::find_dangerous_code,
    .count_checksums = [](const Input& input, const Model&) { return ZipArchive(input.source).members().size(); },
};

}  // namespace poise
