// Reads directories of torch.distributed.checkpoint (DCP), which FSDP and other distributed trainers save:
//
//   .metadata       a pickle of a Metadata object: for each tensor its type, its shape and its boxes ("chunks"), the
//                   pieces that the ranks had; and for each box its file and its range of bytes there
//   __0_0.distcp    one file or several for each rank: archives of torch.save(), one after the other, each with the
//                   tensor of a box
//
// Poise reads the fields of PyTorch's classes from the pickle alone, and assembles a tensor when its bytes are read.
// Source: torch/distributed/checkpoint/metadata.py and filesystem.py of PyTorch 2.9; the same classes of version 1.13
// are in torch.distributed._shard.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "formats/pickle_files.hpp"
#include "formats/pickle_globals.hpp"
#include "formats/pytorch/archive.hpp"
#include "formats/registry.hpp"
#include "io/read_fully.hpp"
#include "io/source_range.hpp"
#include "pack/container.hpp"
#include "views/boxes.hpp"

namespace poise {
namespace pytorch {
namespace {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

constexpr std::string_view kMetadata = ".metadata";
constexpr std::string_view kFileExtension = ".distcp";

// Locates the bytes of a box.
struct StoredBox {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct SavedTensor {
  std::string key = {};  // the key in .metadata
  std::string name = {};
  DType dtype = DType::unknown;
  Shape shape = {};
  std::vector<std::pair<Shape, Shape>> boxes = {};  // the offsets and the sizes of each box
  Id id = pickle::kNone;                            // the object in the pickle, for messages
};

// Names a box by its tensor's key and its offsets; std::nullopt for a tensor that is one box.
using BoxKey = std::pair<std::string, std::optional<Shape>>;

// Reads the pickle of .metadata.
class MetadataReader {
 public:
  MetadataReader(const Pickle& pickle, const std::string& path) : pickle_(pickle), path_(path), values_(pickle, path) {}

  void read() {
    const Id root = pickle_.root();
    require_class(root, "Metadata");
    const std::map<std::string, std::string> names = read_names(root);
    for (const auto& [key, value] : find_pairs(root, "state_dict_metadata")) {
      std::string name = read_text(key, "the name of a tensor");
      const std::string saved_as = find_checkpoint_class(value);
      if (saved_as == "BytesStorageMetadata") {
        objects_.push_back(std::move(name));
        continue;
      }
      require_class(value, "TensorStorageMetadata");
      SavedTensor tensor;
      tensor.key = std::move(name);
      tensor.id = value;
      const auto renamed = names.find(tensor.key);
      tensor.name = renamed == names.end() ? tensor.key : renamed->second;
      tensor.dtype = read_dtype(find_field(value, "properties"));
      tensor.shape = read_size(find_field(value, "size"), "size");
      for (const Id chunk : read_items(find_field(value, "chunks"), "chunks"))
        tensor.boxes.emplace_back(read_size(find_field(chunk, "offsets"), "offsets"),
                                  read_size(find_field(chunk, "sizes"), "sizes"));
      tensors_.push_back(std::move(tensor));
    }
    for (const auto& [key, value] : find_pairs(root, "storage_data")) read_place(key, value);
  }

  std::vector<SavedTensor>& tensors() { return tensors_; }
  // Returns the names of saved objects that are not tensors.
  const std::vector<std::string>& objects() const { return objects_; }
  // Returns the place of a box; null if no file holds it.
  const StoredBox* find_box(const std::string& key, const Shape& offsets) const {
    auto found = places_.find({key, offsets});
    if (found == places_.end()) found = places_.find({key, std::nullopt});
    return found == places_.end() ? nullptr : &found->second;
  }

  [[noreturn]] void fail(Id id, const std::string& problem, ErrorKind kind = ErrorKind::invalid_file) const {
    throw Error(kind, "dcp: " + problem, path_, pickle_.offset(id));
  }

 private:
  // Returns the class of an object, without its module: "Metadata" for torch.distributed.checkpoint.metadata.Metadata;
  // an empty text for classes that is_checkpoint_class() rejects.
  std::string find_checkpoint_class(Id id) const {
    const std::string name = find_function_name(pickle_, id);
    return is_checkpoint_class(name) ? name.substr(name.rfind('.') + 1) : std::string();
  }

  void require_class(Id id, std::string_view expected) const {
    if (find_checkpoint_class(id) == expected) return;
    const std::string found = find_function_name(pickle_, id);
    fail(id, fmt::format("expected an object of the class {} of torch.distributed.checkpoint, found {}", expected,
                         found.empty() ? "another object" : found));
  }

  // Returns the value of a field; pickle::kNone if it is absent.
  Id find_field(Id object, std::string_view field) const {
    if (pickle_.kind(object) != Kind::call) fail(object, fmt::format("expected an object with the field {}", field));
    const std::optional<Id>& state = pickle_.call(object).state;
    const auto pairs = state ? values_.find_pairs(*state) : std::nullopt;
    if (!pairs) return pickle::kNone;
    const auto found = std::ranges::find_if(*pairs, [&](const Values::Pair& pair) {
      return pickle_.kind(pair.key) == Kind::text && pickle_.text(pair.key) == field;
    });
    return found == pairs->end() ? pickle::kNone : found->value;
  }

  std::vector<Values::Pair> find_pairs(Id object, std::string_view field) const {
    auto pairs = values_.find_pairs(find_field(object, field));
    if (!pairs) fail(object, fmt::format("{}: expected a dict", field));
    return *std::move(pairs);
  }

  std::string read_text(Id id, std::string_view field) const {
    if (pickle_.kind(id) != Kind::text) fail(id, fmt::format("{}: expected text", field));
    return std::string(pickle_.text(id));
  }

  std::uint64_t read_natural(Id id, std::string_view field) const {
    if (pickle_.kind(id) != Kind::integer || pickle_.integer(id) < 0)
      fail(id, fmt::format("{}: expected a whole number from 0 on", field));
    return static_cast<std::uint64_t>(pickle_.integer(id));
  }

  std::span<const Id> read_items(Id id, std::string_view field) const {
    if (pickle_.kind(id) != Kind::list && pickle_.kind(id) != Kind::tuple)
      fail(id, fmt::format("{}: expected a list", field));
    return pickle_.items(id);
  }

  // Reads a torch.Size, or a plain list or tuple.
  Shape read_size(Id id, std::string_view field) const {
    Id list = id;
    if (find_function_name(pickle_, id) == "torch.Size") {
      const std::span<const Id> arguments = pickle_.items(pickle_.call(id).arguments);
      if (arguments.size() != 1) fail(id, fmt::format("{}: torch.Size has one argument", field));
      list = arguments[0];
    }
    Shape shape;
    for (const Id item : read_items(list, field)) shape.push_back(read_natural(item, field));
    return shape;
  }

  // Reads the element type. The state of TensorProperties is a tuple that begins with this type, or a dict.
  DType read_dtype(Id properties) const {
    require_class(properties, "TensorProperties");
    const std::optional<Id>& state = pickle_.call(properties).state;
    Id type = pickle::kNone;
    if (state && pickle_.kind(*state) == Kind::tuple) {
      if (!pickle_.items(*state).empty()) type = pickle_.items(*state).front();
    } else {
      type = find_field(properties, "dtype");
    }
    if (pickle_.kind(type) != Kind::global) fail(properties, "dtype: expected a type of torch");
    const std::string name = make_full_name(pickle_.global(type));
    const auto dtype = find_torch_dtype(name);
    if (!dtype) fail(properties, fmt::format("dtype: Poise does not read {}", name), ErrorKind::unsupported);
    return *dtype;
  }

  void read_place(Id key, Id value) {
    require_class(key, "MetadataIndex");
    require_class(value, "_StorageInfo");
    const Id offset = find_field(key, "offset");
    BoxKey box = {read_text(find_field(key, "fqn"), "fqn"), std::nullopt};
    if (offset != pickle::kNone) box.second = read_size(offset, "offset");
    if (find_field(value, "transform_descriptors") != pickle::kNone)
      fail(value, fmt::format("{} is saved with extensions, such as compression: save it without them", box.first),
           ErrorKind::unsupported);
    StoredBox place = {read_text(find_field(value, "relative_path"), "relative_path"),
                       read_natural(find_field(value, "offset"), "offset"),
                       read_natural(find_field(value, "length"), "length")};
    if (place.file.empty() || place.file.find('/') != std::string::npos || place.file.starts_with('.'))
      fail(value,
           fmt::format("relative_path is \"{}\", expected the name of a file in the same directory", place.file));
    const std::string name = box.first;
    if (!places_.emplace(std::move(box), std::move(place)).second)
      fail(value, fmt::format("{}: a part is stored twice", name));
  }

  // Maps saved names to names without the keys of kOuterKeys that lead to the model: ("model", "lm_head.weight")
  // becomes "lm_head.weight". Leaves out names whose path does not begin with such a key, such as ("optim", "state").
  std::map<std::string, std::string> read_names(Id root) const {
    constexpr std::array<std::string_view, 5> kOuterKeys = {"state_dict", "model", "module", "model_state_dict", "app"};
    std::map<std::string, std::vector<std::string>> paths;
    const auto pairs = values_.find_pairs(find_field(root, "planner_data"));
    if (!pairs) return {};
    for (const auto& [key, value] : *pairs) {
      if (pickle_.kind(key) != Kind::text || pickle_.kind(value) != Kind::tuple) return {};
      std::vector<std::string>& path = paths[std::string(pickle_.text(key))];
      for (const Id step : pickle_.items(value)) {
        if (pickle_.kind(step) != Kind::text && pickle_.kind(step) != Kind::integer) return {};
        path.push_back(pickle_.kind(step) == Kind::text ? std::string(pickle_.text(step))
                                                        : std::to_string(pickle_.integer(step)));
      }
    }
    std::map<std::string, std::string> names;
    for (const auto& [key, path] : paths) {
      std::size_t first = 0;
      while (first + 1 < path.size() && std::ranges::find(kOuterKeys, path[first]) != kOuterKeys.end()) ++first;
      const std::vector<std::string> rest(path.begin() + static_cast<std::ptrdiff_t>(first), path.end());
      if (first > 0) names.emplace(key, fmt::format("{}", fmt::join(rest, ".")));
    }
    return names;
  }

  const Pickle& pickle_;
  const std::string& path_;
  Values values_;
  std::vector<SavedTensor> tensors_;
  std::vector<std::string> objects_;
  std::map<BoxKey, StoredBox> places_;
};

// Opens the files next to .metadata, each once.
class BoxFiles {
 public:
  explicit BoxFiles(const SourcePtr& metadata)
      : files_(open_container(ContainerKind::directory, std::filesystem::path(metadata->name()).parent_path(), nullptr,
                              metadata->mapped() ? IoMode::map : IoMode::read)) {}

  // Returns the elements of a box. Throws invalid_file for a box outside its file, and for an archive without one
  // tensor of that type and shape.
  BlobPtr read_box(const StoredBox& box, const SavedTensor& tensor, const Shape& sizes,
                   std::vector<Finding>& warnings) {
    SourcePtr& file = open_[box.file];
    if (file == nullptr) file = files_->open(box.file);
    if (box.offset > file->size() || box.length > file->size() - box.offset)
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("dcp: a part of tensor {} is at {} to {}, and the file has {} bytes: it is cut off, or of "
                      "another checkpoint",
                      tensor.key, box.offset, box.offset + box.length, file->size()),
          file->name(), std::min(box.offset, file->size()));
    std::vector<Tensor> found;
    try {
      Rest rest = read_archive(make_source_part(file, box.offset, box.length, file->name()),
                               [&](Tensor part) { found.push_back(std::move(part)); });
      if (!rest.faults.empty()) throw rest.faults.make_error();
      std::ranges::move(rest.findings, std::back_inserter(warnings));
    } catch (const Error& error) {
      const std::uint64_t offset = box.offset + error.offset().value_or(0);
      throw Error(error.kind(), fmt::format("dcp: tensor {}: {}", tensor.key, error.message()), file->name(), offset);
    }
    if (found.size() != 1 || found.front().layout != Layout::dense || found.front().shape != sizes ||
        found.front().require("data").dtype != tensor.dtype)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("dcp: a part of tensor {}: expected one tensor of {} {}, found {}", tensor.key,
                              to_string(tensor.dtype), to_string(sizes), describe_tensors(found)),
                  file->name(), box.offset);
    return found.front().require("data").blob;
  }

 private:
  static std::string describe_tensors(const std::vector<Tensor>& found) {
    if (found.size() != 1) return fmt::format("{} tensors", found.size());
    if (found.front().layout != Layout::dense) return "one that is not dense";
    return fmt::format("{} {}", to_string(found.front().require("data").dtype), to_string(found.front().shape));
  }

  std::unique_ptr<const Container> files_;
  std::map<std::string, SourcePtr> open_;
};

// Returns std::nullopt for a shape whose bytes do not fit 63 bits.
std::optional<std::uint64_t> count_bytes(const SavedTensor& tensor) {
  const auto elements = element_count(tensor.shape);
  const auto bytes = elements ? packed_bytes(tensor.dtype, *elements) : std::nullopt;
  return bytes && *bytes <= INT64_MAX ? bytes : std::nullopt;
}

Attributes read_checkpoint(const SourcePtr& metadata, FunctionRef<void(Tensor)> add_tensor,
                           std::vector<Finding>& warnings) {
  const std::string& path = metadata->name();
  if (metadata->size() > kMaxPickleBytes)
    throw Error(ErrorKind::unsupported,
                fmt::format("dcp: the file has {} bytes, at most {} are read", metadata->size(), kMaxPickleBytes),
                path);
  const WholeBlob bytes(make_source_blob(metadata, 0, metadata->size()));
  const Pickle pickle = pickle::run(bytes.bytes(), path);
  std::ranges::move(find_unsafe_steps(pickle, path), std::back_inserter(warnings));
  MetadataReader reader(pickle, path);
  reader.read();
  BoxFiles files(metadata);
  for (const SavedTensor& saved : reader.tensors()) {
    if (!count_bytes(saved))
      reader.fail(saved.id, fmt::format("tensor {}: its shape {} has too many elements: their bytes do not fit 63 bits",
                                        saved.key, to_string(saved.shape)));
    std::vector<Box> boxes;
    for (const auto& [offsets, sizes] : saved.boxes) {
      const StoredBox* const place = reader.find_box(saved.key, offsets);
      if (place == nullptr)
        reader.fail(saved.id,
                    fmt::format("tensor {}: no file holds its part at [{}]", saved.key, fmt::join(offsets, ", ")));
      boxes.push_back({offsets, sizes, files.read_box(*place, saved, sizes, warnings)});
    }
    Tensor tensor;
    tensor.name = saved.name;
    tensor.shape = saved.shape;
    if (saved.name != saved.key) tensor.file_name = std::make_shared<const std::string>(saved.key);
    try {
      BlobPtr elements = make_box_blob(saved.shape, std::move(boxes), info(saved.dtype).bits / 8);
      tensor.parts.push_back({.role = "data", .dtype = saved.dtype, .blob = std::move(elements)});
    } catch (const Error& error) {
      if (!error.path().empty()) throw;
      reader.fail(saved.id, fmt::format("tensor {}: {}", saved.key, error.message()), error.kind());
    }
    add_tensor(std::move(tensor));
  }
  if (const std::vector<std::string>& objects = reader.objects(); !objects.empty())
    warnings.push_back({Severity::warning,
                        fmt::format("left out: {}, saved as Python objects",
                                    list_names(std::vector<std::string_view>(objects.begin(), objects.end()))),
                        path, std::nullopt});
  return {};
}

Model read(const Input& input, const ReadOptions& options) {
  const std::filesystem::path path = input.path / kMetadata;
  Model model;
  const SourcePtr metadata = Source::open(path, options.io);
  read_checkpoint(
      metadata, [&](Tensor tensor) { model.add(std::move(tensor)); }, model.warnings);
  model.origin = {input.path, "dcp", 0, {}};
  for (const std::string& name : open_container(ContainerKind::directory, input.path, nullptr)->list_names()) {
    if (name != kMetadata && !name.ends_with(kFileExtension)) continue;
    model.origin.files.push_back(input.path / name);
    std::error_code ignored;  // the size of a missing file does not matter here
    const std::uintmax_t size = std::filesystem::file_size(model.origin.files.back(), ignored);
    if (!ignored) model.origin.size += size;
  }
  return model;
}

// Returns true for the file names of a DCP directory. If it has config.json, it is a Hugging Face directory with
// weights in this format.
bool holds(const MemberNames& names) {
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  return has(kMetadata) && !has("config.json") &&
         std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(kFileExtension); });
}

constexpr std::array<std::string_view, 1> kNames = {kMetadata};

}  // namespace
}  // namespace pytorch

const Format kDistributedCheckpoint = {
    .info = {"dcp", "a distributed checkpoint of PyTorch", ""},
    .holds_bf16 = true,
    .container = ContainerKind::directory,
    .holds = pytorch::holds,
    .read = pytorch::read,
    .weight_files = WeightFiles{pytorch::kNames, {}, pytorch::read_checkpoint},
};

}  // namespace poise
