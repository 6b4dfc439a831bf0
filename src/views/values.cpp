#include <poise/values.hpp>

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/read_fully.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

// The elements as float32.
BlobPtr numbers_of(const Tensor& tensor) {
  if (!has_float_elements(tensor)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: its elements, stored as {}, are not read as floating-point numbers",
                            tensor.name, storage_name(tensor)));
  }
  return dense_blob(tensor, DType::f32);
}

}  // namespace

std::vector<float> values(const Tensor& tensor) {
  const BlobPtr numbers = numbers_of(tensor);
  std::vector<float> result(static_cast<std::size_t>(tensor.elements()));
  read_fully(*numbers->stream(), std::as_writable_bytes(std::span(result)));
  return result;
}

void read_values(const Tensor& tensor, std::uint64_t first, std::span<float> out) {
  const BlobPtr numbers = numbers_of(tensor);
  if (first > tensor.elements() || out.size() > tensor.elements() - first) {
    throw Error(ErrorKind::bad_argument, fmt::format("tensor {}: {} elements from element {}: there are {}",
                                                     tensor.name, out.size(), first, tensor.elements()));
  }
  if (!out.empty()) numbers->read(first * sizeof(float), std::as_writable_bytes(out));
}

Tensor make_tensor(std::string name, Shape shape, const std::vector<float>& elements) {
  static_assert(std::endian::native == std::endian::little);  // the byte order of files
  if (element_count(shape) != elements.size()) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("tensor {}: {} elements for a shape of {}", name, elements.size(), to_string(shape)));
  }
  std::vector<std::byte> bytes(elements.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  BlobPtr data = make_memory_blob(std::move(bytes), name);
  return make_dense(std::move(name), std::move(shape), DType::f32, std::move(data));
}

}  // namespace poise
