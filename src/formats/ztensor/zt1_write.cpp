// Writes zTensor 1.1 as its public library does: the same bytes for the same content in the same order (except zstd
// frames).
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt1.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "pack/writer_digests.hpp"
#include "pack/zstd.hpp"
#include "syntax/cbor.hpp"
#include "tensor/group_scheme.hpp"
#include "views/sparse.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kVersion = "1.1.0";

DigestAlgorithm choose_digest_algorithm1(const WriteOptions& options) {
  if (options.digest != DigestAlgorithm::xxh3) return options.digest.value_or(DigestAlgorithm::sha256);
  throw Error(ErrorKind::bad_argument, "zTensor 1.1 has the digests sha256, crc32c and none, not xxh3");
}

std::string_view spell_type(const Tensor& tensor, const Part& part) {
  const std::string_view name = part.dtype == DType::unknown ? spell_unknown_type(part.type_name())
                                                             : find_spelling(kSpellings1, part.dtype).value_or("");
  if (!name.empty()) return name;
  refuse_tensor("zTensor 1.1", tensor);
}

// Holds the manifest's description of a part.
struct StoredComponent {
  std::string role;
  std::string dtype;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string encoding = "raw";
  std::string digest;  // empty: none
};

// Writes the stored bytes of parts and records their places.
class ComponentWriter {
 public:
  ComponentWriter(Sink& sink, const WriteOptions& options, const std::vector<BlobPtr>& blobs)
      : sink_(sink), digests_(choose_digest_algorithm1(options)), meter_(options.progress, sum_sizes(blobs)) {
    if (options.zstd_level) compressor_.emplace(*options.zstd_level);
  }

  // Writes a part, whose bytes are those of `blob`. finish() returns its digest.
  StoredComponent write(const Tensor& tensor, const Part& part, const Blob& blob) {
    sink_.pad_to(kAlignment1);
    StoredComponent component;
    component.role = part.role;
    component.dtype = spell_type(tensor, part);
    component.offset = sink_.position();
    Hasher* const hasher = digests_.begin_part(&sink_);
    bool is_here = true;
    if (compressor_) {
      component.encoding = "zstd";
      compress(tensor, blob, hasher);
    } else {
      is_here = write_blob(blob, sink_, meter_, tensor.name, hasher);
    }
    component.length = sink_.position() - component.offset;
    digests_.end_part(is_here);
    return component;
  }

  // Returns the digests' texts in the order in which the parts were written.
  std::vector<std::string> finish(Output& output) { return digests_.finish(output); }

 private:
  // Compresses a part. The digest covers the stored bytes: the compressed ones.
  void compress(const Tensor& tensor, const Blob& blob, Hasher* hasher) {
    std::optional<HashingSink> hashing;
    if (hasher != nullptr) hashing.emplace(sink_, *hasher);
    ZstdCompressor::Frame frame(*compressor_, hashing ? static_cast<Sink&>(*hashing) : sink_, blob.size());
    write_blob(blob, frame, meter_, tensor.name);
    frame.finish();
  }

  Sink& sink_;
  WriterDigests digests_;
  Meter meter_;
  std::optional<ZstdCompressor> compressor_;
};

void encode_component(cbor::Encoder& out, const StoredComponent& component) {
  const bool encoded = component.encoding != "raw";
  out.begin_map(3U + (encoded ? 1U : 0U) + (component.digest.empty() ? 0U : 1U));
  out.append_member("dtype", component.dtype);
  out.append_member("offset", component.offset);
  out.append_member("length", component.length);
  if (encoded) out.append_member("encoding", component.encoding);
  if (!component.digest.empty()) out.append_member("digest", component.digest);
}

std::string encode_object(const Tensor& tensor, std::vector<StoredComponent> components) {
  cbor::Encoder out(cbor::KeyOrder::by_text);
  out.begin_map(tensor.attributes.empty() ? 3 : 4);
  out.append_text("shape");
  out.begin_array(tensor.shape.size());
  for (const std::uint64_t dimension : tensor.shape) out.append_u64(dimension);
  out.append_member("format", tensor.layout.name());
  if (!tensor.attributes.empty()) out.append_member("attributes", tensor.attributes);
  out.append_text("components");
  out.begin_map(components.size());
  std::ranges::sort(components, {}, &StoredComponent::role);
  for (const StoredComponent& component : components) {
    out.append_text(component.role);
    encode_component(out, component);
  }
  return out.release();
}

std::string encode_manifest(const Attributes& attributes, const std::map<std::string_view, std::string>& objects) {
  cbor::Encoder out(cbor::KeyOrder::by_text);
  out.begin_map(attributes.empty() ? 2 : 3);
  out.append_member("version", kVersion);
  if (!attributes.empty()) out.append_member("attributes", attributes);
  out.append_text("objects");
  out.begin_map(objects.size());
  for (const auto& [name, object] : objects) {
    out.append_text(name);
    out.append_encoded(object);
  }
  return out.release();
}

// Replaces the attributes with which version 2 describes groups by those of version 1.1. Other attributes stay. Throws
// unsupported for groups that version 1.1 cannot describe.
Tensor convert_groups_to_version_1(Tensor tensor) {
  if (get_group_scheme(tensor.layout) == nullptr || get_group_scheme(tensor.layout)->words == GroupWords::zt1)
    return tensor;
  const GroupScheme scheme = *get_group_scheme(tensor.layout);
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorKind::unsupported,
                fmt::format("zTensor 1.1 cannot hold {}: the format has no attributes for {}", tensor.name, what))
        .with({.kind = Remedy::Kind::dtype, .value = "f32"});
  };
  if (scheme.high_bits_first) refuse("codes with the high bits first");
  if (scheme.axis + 1 != tensor.shape.size() || scheme.group_size == 0)
    refuse("groups along another axis than the last");
  if (scheme.power_of_two) refuse("scales that are powers of two");
  if (scheme.zeros == GroupScheme::Zeros::fixed || scheme.zeros == GroupScheme::Zeros::packed)
    refuse("zero points that are not one number per group");
  for (const std::string_view key : {"axis", "scale_form", "zero_point"}) tensor.attributes.erase(key);
  tensor.attributes.set("packing",
                        fmt::format("{}_per_{}", scheme.per_word, to_string(tensor.require("packed_weight").dtype)));
  return tensor;
}

Tensor convert_to_version_1(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) return convert_to_stored_affine(tensor);
  return tensor.layout == Layout::quantized_group ? convert_groups_to_version_1(tensor) : tensor;
}

// Throws unsupported for a tensor that Poise would reject when it reads the file: version 1.1 may define a layout or
// type that is unknown in the version of the original file.
void require_readable_again(const Tensor& stored) {
  Tensor reread = stored;
  for (Part& part : reread.parts) {  // "f32" is unknown in 0.1, but not in 1.1
    if (part.dtype == DType::unknown)
      part.dtype = find_spelled_dtype(kSpellings1, spell_unknown_type(part.type_name())).value_or(DType::unknown);
  }
  try {
    convert_from_stored1(reread, stored.layout.name(), Sizes1::known);
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported, fmt::format("zTensor 1.1 cannot hold {}: {}", stored.name, error.message()));
  }
}

void check_indices(const Tensor& tensor) {
  const auto is_known_part = [](const Part& part) { return part.role == "values" || part.dtype != DType::unknown; };
  if (is_sparse(tensor) && std::ranges::all_of(tensor.parts, is_known_part))
    validate_sparse(tensor, get_sparse_rules(tensor));
}

Tensor convert_to_stored(const Tensor& tensor) {
  Tensor stored = convert_to_version_1(tensor);
  require_readable_again(stored);
  return stored;
}

using Components = std::vector<std::vector<StoredComponent>>;  // the first index is the tensor, the second the part

void write_magic1(Sink& sink) { sink.write(std::as_bytes(std::span(kMagic1))); }

// Writes the manifest and everything after it.
void write_manifest1(Sink& sink, const Attributes& attributes, const std::vector<Tensor>& tensors,
                     Components components) {
  std::map<std::string_view, std::string> objects;  // encoded objects by name: std::map sorts as the format requires
  for (std::size_t i = 0; i < tensors.size(); ++i)
    objects.emplace(tensors[i].name, encode_object(tensors[i], std::move(components[i])));
  const std::string manifest = encode_manifest(attributes, objects);
  if (manifest.size() > kMaxManifestBytes)
    throw Error(ErrorKind::unsupported, "zTensor 1.1: the manifest would be larger than 1 GiB");
  require_readable(measure_manifest(attributes, tensors), manifest.size());
  ByteWriter tail;
  tail.append_text(manifest);
  tail.append_u64(manifest.size());
  tail.append_text(kMagic1);
  sink.write(tail.bytes());
}

}  // namespace

std::string_view spell_unknown_type(std::string_view name) {
  constexpr std::string_view kBytes = "u8:";
  const std::string_view logical = name.starts_with(kBytes) ? name.substr(kBytes.size()) : std::string_view();
  return logical.empty() || find_spelled_dtype(kSpellings1, logical) ? name : logical;
}

void write_zt1(const Model& model, Output& output, const WriteOptions& options) {
  const Attributes attributes = make_text_attributes(model);
  std::vector<Tensor> tensors;
  for (const Tensor& tensor : model.tensors()) {
    check_indices(tensor);
    tensors.push_back(convert_to_stored(tensor));
  }
  Sink& sink = output.main();
  write_magic1(sink);
  const std::vector<BlobPtr> blobs = list_part_blobs(tensors);
  const ReadAhead ahead(ReadAhead::list_blobs(blobs, [](const BlobPtr& blob) -> const Blob& { return *blob; }));
  std::size_t next = 0;
  ComponentWriter writer(sink, options, blobs);
  Components components;
  components.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    auto& written = components.emplace_back();
    for (const Part& part : tensor.parts) written.push_back(writer.write(tensor, part, ahead[next++]));
  }
  std::vector<std::string> digests = writer.finish(output);
  auto digest = digests.begin();
  for (auto& written : components) {
    for (StoredComponent& component : written) component.digest = std::move(*digest++);
  }
  write_manifest1(sink, attributes, tensors, std::move(components));
}

FilePlan plan_zt1(const Model& model, const WriteOptions& options) {
  FilePlan plan;
  const Attributes attributes = make_text_attributes(model);
  const std::string digest = compute_empty_digest(choose_digest_algorithm1(options));
  if (options.zstd_level) require_zstd_level(*options.zstd_level);
  CountingSink sink;
  write_magic1(sink);
  std::vector<Tensor> tensors;
  Components components;
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.layout == Layout::affine) plan.exact = false;
    const Tensor& stored = tensors.emplace_back(convert_to_stored(set_longest_scale(tensor)));
    auto& planned = components.emplace_back();
    for (const Part& part : stored.parts) {
      sink.pad_to(kAlignment1);
      StoredComponent& component = planned.emplace_back();
      component.role = part.role;
      component.dtype = spell_type(stored, part);
      component.offset = sink.position();
      component.length = part.blob->size();
      component.encoding = options.zstd_level ? "zstd" : "raw";
      component.digest = digest;
      sink.pad(part.blob->size());
    }
    plan.tensor_bytes.push_back(stored.size_bytes());
  }
  write_manifest1(sink, attributes, tensors, std::move(components));
  if (!options.zstd_level) plan.bytes = sink.position();
  return plan;
}

std::vector<std::string> list_zt1_losses(const Model& model, const WriteOptions&) {
  std::map<std::string, std::vector<std::string_view>> tensors;  // the names, by what the public library cannot do
  for (const Tensor& tensor : model.tensors()) {
    const auto note = [&](const char* what) {
      if (auto& names = tensors[what]; names.empty() || names.back() != tensor.name) names.emplace_back(tensor.name);
    };
    for (const Part& part : tensor.parts) {
      const bool index = is_sparse(tensor) && part.role != "values";
      if (part.dtype == DType::f8_e4m3 || part.dtype == DType::f8_e5m2) note("cannot read float8 elements");
      if (part.dtype == DType::complex64 || part.dtype == DType::complex128) note("cannot read complex elements");
      if (index && part.dtype != DType::u64) note("cannot read sparse indices of other types than u64");
    }
  }
  std::vector<std::string> losses;
  const DescribedVocabulary described = make_described_vocabulary(model);
  if (std::string loss = describe_text_loss(described.attributes, "zTensor 1.1"); !loss.empty())
    losses.push_back(std::move(loss));
  if (std::string loss = describe_text_loss(described, "zTensor 1.1"); !loss.empty()) losses.push_back(std::move(loss));
  for (const auto& [what, names] : tensors) {
    const std::string more = names.size() == 1 ? "" : fmt::format(" (and {} more)", names.size() - 1);
    losses.push_back(fmt::format("the public ztensor library 1.1 {}, which {}{} needs", what, names[0], more));
  }
  return losses;
}

}  // namespace poise::ztensor
