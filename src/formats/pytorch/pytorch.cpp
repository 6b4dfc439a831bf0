#include "formats/registry.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "formats/pytorch/archive.hpp"
#include "formats/pytorch/pytorch.hpp"
#include "io/lookalikes.hpp"
#include "pack/zip.hpp"

namespace poise {
namespace {

constexpr std::array<std::string_view, 3> kExtensions = {".pth", ".bin", ".ckpt"};
constexpr std::array<std::string_view, 2> kNames = {"pytorch_model.bin", "adapter_model.bin"};

bool holds(const MemberNames& names) { return std::ranges::any_of(names, pytorch::is_pickle_name); }

// Returns true for a file of torch.save() from before version 1.6.
bool sniff(const Input& input) {
  const auto bytes = read_first_bytes(input, pytorch::kMagicWithin);
  return pytorch::has_legacy_magic({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

pytorch::Rest read_archive_or_legacy(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor) {
  return find_container_kind({source->name(), source}) == ContainerKind::zip ? pytorch::read_archive(source, add_tensor)
                                                                             : pytorch::read_legacy(source, add_tensor);
}

Attributes read_weights(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor, std::vector<Finding>& warnings) {
  pytorch::Rest rest = read_archive_or_legacy(source, add_tensor);
  if (!rest.faults.empty()) throw rest.faults.make_error();
  std::ranges::move(rest.findings, std::back_inserter(warnings));
  return std::move(rest.attributes);
}

Model read(const Input& input, const ReadOptions&) {
  Model model;
  model.origin = {input.path, "pytorch", input.source->size(), {input.path}};
  pytorch::Rest rest = read_archive_or_legacy(input.source, [&](Tensor tensor) { model.add(std::move(tensor)); });
  model.attributes = std::move(rest.attributes);
  model.warnings = std::move(rest.findings);
  if (!rest.faults.empty()) throw std::move(rest.faults).make_faulty_model(std::move(model));
  return model;
}

// Describes the danger of tar archives: torch.load() runs the pickles in them, because PyTorch's oldest files are tar
// archives.
Finding describe_danger_of_tar(const Source& source) {
  const std::string extension = std::filesystem::path(source.name()).extension().string();
  const bool is_checkpoint = extension == kPytorch.info.extension || std::ranges::count(kExtensions, extension) > 0;
  return {is_checkpoint ? Severity::error : Severity::warning,
          "this is a tar archive, whose members Poise does not read: torch.load() runs the pickles in it",
          source.name(), 0};
}

std::vector<Finding> find_dangerous_code(const SourcePtr& source) {
  const Input input{source->name(), source};
  if (find_container_kind(input) == ContainerKind::zip) return pytorch::find_dangers_in_archive(source);
  std::vector<Finding> findings = pytorch::find_dangers_in_pickles(source);
  if (is_tar_archive(*source)) findings.push_back(describe_danger_of_tar(*source));
  return findings;
}

bool is_archive(const Input& input) { return find_container_kind(input) == ContainerKind::zip; }

std::vector<Finding> audit(const Input& input, const Model&) {
  if (!is_archive(input)) return {};
  const ZipArchive archive(input.source);
  std::vector<Finding> findings = archive.check_crc32();
  std::ranges::move(pytorch::find_dangers_in_other_members(archive), std::back_inserter(findings));
  return findings;
}

std::size_t count_checksums(const Input& input, const Model&) {
  return is_archive(input) ? ZipArchive(input.source).members().size() : 0;
}

}  // namespace

const Format kPytorch = {
    .info = {"pytorch", "a PyTorch checkpoint", ".pt"},
    .extensions = kExtensions,
    .holds_bf16 = true,
    .sniff = sniff,
    .container = ContainerKind::zip,
    .holds = holds,
    .read = read,
    .prepare = prepare_with<pytorch::plan, pytorch::write, pytorch::list_losses>,
    .audit = audit,
    .find_dangerous_code = find_dangerous_code,
    .count_checksums = count_checksums,
    .weight_files = WeightFiles{kNames, "pytorch_model.bin.index.json", read_weights},
};

}  // namespace poise
