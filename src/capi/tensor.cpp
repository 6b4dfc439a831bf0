#include "capi/handles.hpp"
#include "views/dense.hpp"

using namespace poise::capi;

namespace {

static_assert(static_cast<int>(poise::Layout::dense) == POISE_DENSE && static_cast<int>(poise::Layout::sparse_csr) == POISE_SPARSE_CSR &&
              static_cast<int>(poise::Layout::sparse_coo) == POISE_SPARSE_COO && static_cast<int>(poise::Layout::quantized_group) == POISE_QUANTIZED_GROUP &&
              static_cast<int>(poise::Layout::affine) == POISE_AFFINE && static_cast<int>(poise::Layout::other) == POISE_LAYOUT_OTHER);

poise_part part_from(const poise::Part& part, std::vector<std::string>& encodings) {
  poise_part out{};
  out.role = lend(part.role);
  out.dtype = c_dtype(part.dtype);
  out.dtype_name = lend(part.dtype == poise::DType::unknown ? std::string_view(part.dtype_name) : poise::to_string(part.dtype));
  out.size = part.blob->size();
  out.file = out.encoding = lend({});
  out.offset = POISE_NO_OFFSET;
  if (const auto location = part.blob->location()) {
    out.file = lend(location->source->name());
    out.offset = location->offset;
    out.stored_size = location->length;
    out.encoding = lend(encodings.emplace_back(location->encoding));
  }
  out.digest = lend(part.digest ? std::string_view(part.digest->text) : std::string_view());
  out.blob = c_blob(*part.blob);
  return out;
}

const std::vector<poise_part>& parts_of(const poise_model& model, std::size_t index) {
  poise_parts& made = model.parts[index];
  std::call_once(made.once, [&] {
    const poise::Tensor& tensor = model.tensor(index);
    made.encodings.clear();
    made.encodings.reserve(tensor.parts.size());  // parts view the texts in place
    std::vector<poise_part> parts;
    for (const poise::Part& part : tensor.parts) parts.push_back(part_from(part, made.encodings));
    made.parts = std::move(parts);
  });
  return made.parts;
}

poise_tensor describe(const poise_model& model, std::size_t index) {
  const poise::Tensor& tensor = model.tensor(index);
  const std::vector<poise_part>& parts = parts_of(model, index);
  poise_tensor out{};
  out.index = index;
  out.name = lend(tensor.name);
  out.layout = static_cast<poise_layout>(tensor.layout);
  out.layout_name = lend(tensor.layout == poise::Layout::other ? std::string_view(tensor.layout_name) : poise::to_string(tensor.layout));
  const bool is_dense = tensor.layout == poise::Layout::dense;  // which has data, and perhaps more
  out.dtype = is_dense ? c_dtype(tensor.require("data").dtype) : parts.empty() ? POISE_DTYPE_UNKNOWN : parts.front().dtype;
  out.rank = static_cast<std::uint32_t>(tensor.shape.size());
  out.dims = tensor.shape.data();
  out.elements = tensor.elements();
  if (tensor.affine) {
    const poise::Affine affine = tensor.affine->get();
    out.affine = {affine.delta, affine.min, affine.max, affine.packed};
  }
  out.attributes = c_attributes(tensor.attributes);
  out.part_count = parts.size();
  out.parts = parts.data();
  return out;
}

poise::DType decoded_type(poise_dtype dtype) {
  const poise::DType type = dtype_from(dtype);
  if (type == poise::DType::f32 || type == poise::DType::f16 || type == poise::DType::bf16) return type;
  refuse(fmt::format("tensors are decoded to f32, f16 or bf16, not {}", poise::to_string(type)));
}

}  // namespace

poise_status poise_tensor_at(const poise_model* model, size_t index, poise_tensor* tensor, poise_error* error) {
  return guard(error, [&] { at(tensor, "tensor") = describe(at(model, "model"), index); });
}

poise_status poise_tensor_find(const poise_model* model, const char* name, poise_tensor* tensor, poise_error* error) {
  return guard(error, [&] {
    const poise_model& of = at(model, "model");
    at(tensor, "tensor") = describe(of, of.index_of(text_at(name, "name")));
  });
}

poise_status poise_tensor_part(const poise_tensor* tensor, const char* role, poise_part* part, poise_error* error) {
  return guard(error, [&] {
    const std::string_view wanted = text_at(role, "role");
    const poise_tensor& of = at(tensor, "tensor");
    for (const poise_part& candidate : items(of.parts, of.part_count, "tensor->parts")) {
      if (std::string_view(candidate.role.data, candidate.role.size) != wanted) continue;
      at(part, "part") = candidate;
      return;
    }
    no_such(fmt::format("tensor {}: there is no part \"{}\"", std::string_view(of.name.data, of.name.size), wanted));
  });
}

poise_status poise_tensor_decode(const poise_model* model, size_t index, poise_dtype dtype, uint64_t first, uint64_t count, void* out, size_t size,
                                 poise_error* error) {
  return guard(error, [&] {
    const poise::Tensor& tensor = at(model, "model").tensor(index);
    const poise::DType type = decoded_type(dtype);
    if (!poise::has_float_elements(tensor)) {
      throw poise::Error(
          poise::ErrorKind::unsupported,
          fmt::format("tensor {}: its elements, stored as {}, are not read as floating-point numbers; poise_blob_read copies the bytes of its parts",
                      tensor.name, poise::storage_name(tensor)),
          model->model.origin.path.string());
    }
    const std::uint64_t elements = tensor.elements();
    if (first > elements || count > elements - first) {
      refuse(fmt::format("tensor {}: {} elements from element {}: there are {}", tensor.name, count, first, elements));
    }
    const std::uint64_t width = poise::info(type).bits / 8;
    if (size % width != 0 || size / width != count) refuse(fmt::format("{} elements of {} bytes do not make {} bytes", count, width, size));
    if (count > 0) poise::dense_blob(tensor, type)->read(first * width, items(static_cast<std::byte*>(out), size, "out"));
  });
}

poise_status poise_blob_map(const poise_blob* blob, poise_bytes* bytes, poise_error* error) {
  return guard(error, [&] {
    const auto mapped = blob_at(blob).map();
    if (!mapped) throw poise::Error(poise::ErrorKind::unsupported, "these bytes cannot be lent: they are compressed, absent, or their file is not mapped");
    at(bytes, "bytes") = {mapped->data(), mapped->size()};
  });
}

poise_status poise_blob_read(const poise_blob* blob, uint64_t offset, void* out, size_t size, poise_error* error) {
  return guard(error, [&] {
    const poise::Blob& from = blob_at(blob);
    if (offset > from.size() || size > from.size() - offset) refuse(fmt::format("{} bytes from byte {}: the part has {}", size, offset, from.size()));
    if (size > 0) from.read(offset, items(static_cast<std::byte*>(out), size, "out"));
  });
}
