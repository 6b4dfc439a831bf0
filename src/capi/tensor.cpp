#include <limits>

#include <poise/values.hpp>

#include "capi/face.hpp"
#include "views/dense.hpp"

using namespace poise::capi;

namespace {

static_assert(static_cast<int>(poise::Layout::dense) == POISE_DENSE &&
              static_cast<int>(poise::Layout::sparse_csr) == POISE_SPARSE_CSR &&
              static_cast<int>(poise::Layout::sparse_coo) == POISE_SPARSE_COO &&
              static_cast<int>(poise::Layout::quantized_group) == POISE_QUANTIZED_GROUP &&
              static_cast<int>(poise::Layout::affine) == POISE_AFFINE &&
              static_cast<int>(poise::Layout::other) == POISE_LAYOUT_OTHER);

static_assert(static_cast<int>(poise::DigestAlgorithm::unknown) == 4,
              "a new algorithm needs a number in poise_digest_algorithm");

poise_digest_algorithm to_c_algorithm(poise::DigestAlgorithm algorithm) {
  switch (algorithm) {
    case poise::DigestAlgorithm::none: return POISE_DIGEST_NONE;
    case poise::DigestAlgorithm::sha256: return POISE_DIGEST_SHA256;
    case poise::DigestAlgorithm::crc32c: return POISE_DIGEST_CRC32C;
    case poise::DigestAlgorithm::xxh3: return POISE_DIGEST_XXH3;
    case poise::DigestAlgorithm::unknown: return POISE_DIGEST_OTHER;
  }
  return POISE_DIGEST_OTHER;
}

const std::vector<poise_part>& list_parts(const poise_tensor& tensor) {
  std::call_once(tensor.once, [&] {
    std::vector<poise_part> parts;
    for (const poise::Part& part : require_tensor(&tensor).parts) {
      parts.push_back({&tensor, &part, part.blob->stored(), part.digest ? part.digest->text : std::string()});
    }
    tensor.parts = std::move(parts);
  });
  return tensor.parts;
}

poise_tensor_info make_tensor_info(const poise_tensor& handle) {
  const poise::Tensor& tensor = require_tensor(&handle);
  poise_tensor_info out = POISE_TENSOR_INFO_INIT;
  out.index = handle.index;
  out.name = lend_text(tensor.name);
  out.layout = static_cast<poise_layout>(tensor.layout.kind());
  out.layout_name = lend_text(tensor.layout.name());
  const bool is_dense = tensor.layout == poise::Layout::dense;  // dense tensors have a part "data", and perhaps others
  out.dtype = is_dense               ? to_c_dtype(tensor.require("data").dtype)
              : tensor.parts.empty() ? POISE_DTYPE_UNKNOWN
                                     : to_c_dtype(tensor.parts.front().dtype);
  out.rank = tensor.shape.size();
  out.dims = tensor.shape.data();
  out.elements = tensor.elements();
  if (tensor.layout.affine() != nullptr) {
    const poise::Affine affine = tensor.layout.affine()->get();
    out.affine = {affine.delta, affine.min, affine.max, affine.packed};
  }
  out.attributes = lend_attributes(tensor.attributes);
  out.parts = tensor.parts.size();
  return out;
}

poise_part_info make_part_info(const poise_part& handle) {
  const poise::Part& part = *handle.part;
  poise_part_info out = POISE_PART_INFO_INIT;
  out.role = lend_text(part.role);
  out.dtype = to_c_dtype(part.dtype);
  out.dtype_name = lend_text(part.shown_type());
  out.decoded_size = part.blob->size();
  out.file = out.encoding_name = out.digest = lend_text({});
  if (handle.location) {
    out.encoding = handle.location->encoding == "raw" ? POISE_ENCODING_RAW : POISE_ENCODING_OTHER;
    out.encoding_name = lend_text(handle.location->encoding);
    out.file = lend_text(handle.location->source->name());
    out.offset = handle.location->offset;
    out.stored_size = handle.location->length;
  }
  if (part.digest) {
    out.digest = lend_text(handle.digest);
    out.digest_algorithm = to_c_algorithm(part.digest->algorithm);
  }
  return out;
}

const poise::Blob& require_blob(const poise_part* part) { return *dereference(part, "part").part->blob; }

poise::Shape copy_shape(const uint64_t* dims, size_t rank) {
  const auto given = view_items(dims, rank, "dims");
  return {given.begin(), given.end()};
}

// Borrows the caller's numbers as the bytes of a blob, during a call.
class BorrowedNumbers final : public poise::Blob {
 public:
  explicit BorrowedNumbers(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  std::optional<std::span<const std::byte>> map() const override { return bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::span<const std::byte> bytes_;
};

poise::DType convert_decoded_type(poise_dtype dtype) {
  const poise::DType type = convert_dtype(dtype);
  if (type == poise::DType::f32 || type == poise::DType::f16 || type == poise::DType::bf16) return type;
  refuse(fmt::format("tensors are decoded to f32, f16 or bf16, not {}", poise::to_string(type)));
}

}  // namespace

poise_status poise_tensor_at(const poise_model* model, size_t index, const poise_tensor** tensor, poise_error* error) {
  return catch_errors(error, [&] { dereference(tensor, "tensor") = &dereference(model, "model").tensor(index); });
}

poise_status poise_tensor_find(const poise_model* model, const char* name, const poise_tensor** tensor,
                               poise_error* error) {
  return catch_errors(
      error, [&] { dereference(tensor, "tensor") = &dereference(model, "model").tensor(require_text(name, "name")); });
}

poise_status poise_tensor_describe(const poise_tensor* tensor, poise_tensor_info* info, poise_error* error) {
  return catch_errors(error, [&] { copy_struct_out(info, "info", make_tensor_info(dereference(tensor, "tensor"))); });
}

poise_status poise_tensor_part_at(const poise_tensor* tensor, size_t index, const poise_part** part,
                                  poise_error* error) {
  return catch_errors(error, [&] {
    const std::vector<poise_part>& parts = list_parts(dereference(tensor, "tensor"));
    check_index(fmt::format("tensor {}: part", require_tensor(tensor).name), index, parts.size());
    dereference(part, "part") = &parts[index];
  });
}

poise_status poise_tensor_part(const poise_tensor* tensor, const char* role, const poise_part** part,
                               poise_error* error) {
  return catch_errors(error, [&] {
    const std::string_view wanted = require_text(role, "role");
    for (const poise_part& candidate : list_parts(dereference(tensor, "tensor"))) {
      if (candidate.part->role != wanted) continue;
      dereference(part, "part") = &candidate;
      return;
    }
    refuse_missing(fmt::format("tensor {}: there is no part \"{}\"", require_tensor(tensor).name, wanted));
  });
}

poise_status poise_part_describe(const poise_part* part, poise_part_info* info, poise_error* error) {
  return catch_errors(error, [&] { copy_struct_out(info, "info", make_part_info(dereference(part, "part"))); });
}

poise_status poise_tensor_decode(const poise_tensor* handle, poise_dtype dtype, uint64_t first, uint64_t count,
                                 void* out, size_t size, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Tensor& tensor = require_tensor(handle);
    const poise::DType type = convert_decoded_type(dtype);
    if (!poise::has_float_elements(tensor)) {
      throw poise::Error(
          poise::ErrorKind::unsupported,
          fmt::format("tensor {}: it is stored as {}, which Poise cannot decode to floating-point numbers; "
                      "poise_part_read copies the bytes of its parts",
                      tensor.name, poise::describe_storage(tensor)),
          handle->model->model.origin.path.string());
    }
    const std::uint64_t elements = tensor.elements();
    if (first > elements || count > elements - first) {
      refuse(fmt::format("tensor {}: cannot decode {} elements from element {} on: the tensor has {}", tensor.name,
                         count, first, elements));
    }
    const std::uint64_t width = poise::info(type).bits / 8;
    if (size % width != 0 || size / width != count)
      refuse(fmt::format("size is {}, expected {} elements of {} bytes each", size, count, width));
    if (count > 0)
      poise::make_dense_blob(tensor, type)->read(first * width, view_items(static_cast<std::byte*>(out), size, "out"));
  });
}

poise_status poise_quantize(const float* numbers, const uint64_t* dims, size_t rank, const char* type,
                            poise_model** model, poise_error* error) {
  return catch_errors(error, [&] {
    poise_model*& result = dereference(model, "model");
    const poise::Shape shape = copy_shape(dims, rank);
    const std::string_view name = require_text(type, "type");
    const auto stored = poise::stored_type_from_name(name);
    if (!stored || !stored->quantized())
      refuse(fmt::format("type is \"{}\", expected a quantized type such as qint8 or q4_k", name));
    const auto count = poise::element_count(shape);
    if (!count) refuse(fmt::format("the elements of shape {} overflow", poise::to_string(shape)));
    const auto given = view_items(numbers, static_cast<std::size_t>(*count), "numbers");
    const auto bytes = std::as_bytes(given);
    poise::Model made;
    made.add(poise::quantized(poise::make_dense("", shape, poise::DType::f32, std::make_shared<BorrowedNumbers>(bytes)),
                              *stored));
    result = new poise_model(std::move(made));
  });
}

poise_status poise_dequantize(const void* blocks, size_t size, const char* type, const uint64_t* dims, size_t rank,
                              float* numbers, size_t count, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Shape shape = copy_shape(dims, rank);
    const auto given = view_items(static_cast<const std::byte*>(blocks), size, "blocks");
    const poise::Tensor tensor =
        poise::make_block_tensor("", shape, require_text(type, "type"), {given.begin(), given.end()});
    if (count != tensor.elements())
      refuse(
          fmt::format("count is {}, but shape {} has {} elements", count, poise::to_string(shape), tensor.elements()));
    poise::read_values(tensor, 0, view_items(numbers, count, "numbers"));
  });
}

poise_status poise_part_map(const poise_part* part, poise_bytes* bytes, poise_error* error) {
  return catch_errors(error, [&] {
    const auto mapped = require_blob(part).map();
    if (!mapped)
      throw poise::Error(
          poise::ErrorKind::unsupported,
          "these bytes have no address in memory: they are compressed, absent, or their file is not mapped");
    dereference(bytes, "bytes") = {mapped->data(), mapped->size()};
  });
}

poise_status poise_part_read(const poise_part* part, uint64_t offset, void* out, size_t size, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Blob& from = require_blob(part);
    if (offset > from.size() || size > from.size() - offset)
      refuse(fmt::format("cannot read {} bytes from byte {} on: the part has {}", size, offset, from.size()));
    if (size > 0) from.read(offset, view_items(static_cast<std::byte*>(out), size, "out"));
  });
}

using namespace poise::capi;

namespace {

using poise::Attributes;
using poise::Value;

poise_value_type find_value_type(const Value& value) {
  struct Visitor {
    poise_value_type operator()(std::nullptr_t) const { return POISE_VALUE_NULL; }
    poise_value_type operator()(bool) const { return POISE_VALUE_BOOLEAN; }
    poise_value_type operator()(std::int64_t) const { return POISE_VALUE_INTEGER; }
    poise_value_type operator()(std::uint64_t) const { return POISE_VALUE_INTEGER; }
    poise_value_type operator()(double) const { return POISE_VALUE_REAL; }
    poise_value_type operator()(const std::string&) const { return POISE_VALUE_TEXT; }
    poise_value_type operator()(const Value::Bytes&) const { return POISE_VALUE_BYTES; }
    poise_value_type operator()(const Value::Array&) const { return POISE_VALUE_ARRAY; }
    poise_value_type operator()(const Attributes&) const { return POISE_VALUE_MAP; }
    poise_value_type operator()(const Value::Pairs&) const { return POISE_VALUE_MAP; }
  };
  return std::visit(Visitor{}, value.storage());
}

const char* describe_type(poise_value_type type) {
  constexpr const char* kNames[] = {"null", "a boolean", "an integer", "a real number",
                                    "text", "bytes",     "an array",   "a map"};
  return kNames[type];
}

const Value& require_value(const poise_attributes* attributes, const char* key) {
  const Attributes& map = require_attributes(attributes);
  const Value* value = map.find(require_text(key, "key"));
  if (value == nullptr) refuse_missing(fmt::format("there is no attribute \"{}\"", key));
  return *value;
}

[[noreturn]] void refuse_type(const char* key, const Value& value, const char* wanted) {
  throw poise::Error(poise::ErrorKind::unsupported,
                     fmt::format("attribute \"{}\" is {}, not {}", key, describe_type(find_value_type(value)), wanted));
}

template <typename T>
const T& require_typed_value(const poise_attributes* attributes, const char* key, const char* wanted) {
  const Value& value = require_value(attributes, key);
  const T* found = value.get_if<T>();
  if (found == nullptr) refuse_type(key, value, wanted);
  return *found;
}

std::int64_t require_integer(const Value& value, const char* key) {
  if (const auto* number = value.get_if<std::int64_t>()) return *number;
  const auto* number = value.get_if<std::uint64_t>();
  if (number == nullptr) refuse_type(key, value, "an integer");
  if (*number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse_type(key, value, "one that a signed integer can hold");
  return static_cast<std::int64_t>(*number);
}

double require_real(const Value& value, const char* key) {
  if (const auto* number = value.get_if<double>()) return *number;
  if (const auto* number = value.get_if<std::uint64_t>()) return static_cast<double>(*number);
  if (const auto* number = value.get_if<std::int64_t>()) return static_cast<double>(*number);
  refuse_type(key, value, "a number");
}

}  // namespace

poise_status poise_attributes_count(const poise_attributes* attributes, size_t* count, poise_error* error) {
  return catch_errors(error, [&] { dereference(count, "count") = require_attributes(attributes).size(); });
}

poise_status poise_attributes_at(const poise_attributes* attributes, size_t index, poise_text* key,
                                 poise_value_type* type, poise_error* error) {
  return catch_errors(error, [&] {
    const Attributes& map = require_attributes(attributes);
    check_index("attribute", index, map.size());
    const auto& [name, value] = map.begin()[static_cast<std::ptrdiff_t>(index)];
    poise_text& name_out = dereference(key, "key");
    dereference(type, "type") = find_value_type(value);
    name_out = lend_text(name);
  });
}

poise_status poise_attributes_get_boolean(const poise_attributes* attributes, const char* key, int* value,
                                          poise_error* error) {
  return catch_errors(error,
                      [&] { dereference(value, "value") = require_typed_value<bool>(attributes, key, "a boolean"); });
}

poise_status poise_attributes_get_integer(const poise_attributes* attributes, const char* key, int64_t* value,
                                          poise_error* error) {
  return catch_errors(error,
                      [&] { dereference(value, "value") = require_integer(require_value(attributes, key), key); });
}

poise_status poise_attributes_get_unsigned(const poise_attributes* attributes, const char* key, uint64_t* value,
                                           poise_error* error) {
  return catch_errors(error, [&] {
    dereference(value, "value") = require_typed_value<std::uint64_t>(attributes, key, "an unsigned integer");
  });
}

poise_status poise_attributes_get_real(const poise_attributes* attributes, const char* key, double* value,
                                       poise_error* error) {
  return catch_errors(error, [&] { dereference(value, "value") = require_real(require_value(attributes, key), key); });
}

poise_status poise_attributes_get_text(const poise_attributes* attributes, const char* key, poise_text* value,
                                       poise_error* error) {
  return catch_errors(error, [&] {
    dereference(value, "value") = lend_text(require_typed_value<std::string>(attributes, key, "text"));
  });
}

poise_status poise_attributes_get_bytes(const poise_attributes* attributes, const char* key, poise_bytes* value,
                                        poise_error* error) {
  return catch_errors(error, [&] {
    const auto& bytes = require_typed_value<Value::Bytes>(attributes, key, "bytes");
    dereference(value, "value") = {bytes.data(), bytes.size()};
  });
}

poise_status poise_attributes_get_json(const poise_attributes* attributes, const char* key, poise_string* json,
                                       poise_error* error) {
  return catch_errors(error, [&] {
    poise_string& out = dereference(json, "json");
    out = copy_text_out(
        poise::to_json(key == nullptr ? Value(require_attributes(attributes)) : require_value(attributes, key)));
  });
}
