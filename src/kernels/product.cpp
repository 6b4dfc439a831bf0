#include "kernels/product.hpp"

#include "codec/block_type.hpp"
#include "kernels/product_kernels.hpp"

namespace poise {
namespace {

// Multiplies few tokens. If the stored type has no kernel that reads its bytes directly, converts a few rows at a time
// to float32 first.
void multiply_few(const StoredRows& matrix, std::size_t first, std::size_t last, const FewFloats& x, float* y,
                  std::size_t stride) {
  const TypeKernels& kernels = find_stored_type(matrix).kernels();
  if (kernels.multiply_floats != nullptr) return kernels.multiply_floats(matrix, first, last, x, y, stride);
  visit_float_rows(matrix, first, last, [&](const StoredRows& rows, std::size_t r, std::size_t count) {
    multiply_few(rows, 0, count, x, y + (r - first), stride);
  });
}

}  // namespace

void decode_part(const StoredRows& matrix, const DecodedPart& part) {
  find_stored_type(matrix).kernels().decode(matrix, part);
}

void decode_rows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out) {
  decode_part(matrix, {first, first + count, 0, matrix.columns, out, matrix.columns});
}

std::uint64_t count_element_bytes(const StoredRows& matrix, std::uint64_t elements) {
  if (matrix.blocks != nullptr) return elements / matrix.blocks->elements * matrix.blocks->bytes;
  const std::uint64_t bits = find_stored_type(matrix).bits;
  return bits < 8 ? elements / 2 + elements % 2 : elements * (bits / 8);
}

std::size_t measure_scale(const StoredRows& matrix) { return find_stored_type(matrix).scale_bytes; }

bool has_integer_product(const StoredRows& matrix) {
  const TypeKernels& kernels = find_stored_type(matrix).kernels();
  if (kernels.multiply_words == nullptr && kernels.multiply_bytes == nullptr) return false;
  return matrix.group_size == 0 ||
         (KernelInput::kIntegerBlock % matrix.group_size == 0 && matrix.group_size >= kernels.least_group);
}

RowsAtOnce choose_rows_at_once(const StoredRows& matrix, std::size_t tokens, Precision precision) {
  const auto rows = [](std::size_t count) { return RowsAtOnce{count, count}; };
  switch (choose_input_form(matrix, tokens, precision)) {
    case KernelInput::Form::floats:
      return rows(KernelInput::is_few(matrix, tokens, precision) ? choose_rows_for_few_tokens(tokens) : kPanelRows);
    case KernelInput::Form::words:
    case KernelInput::Form::bytes: return rows(4);
    case KernelInput::Form::tiles: return {kTileRows, choose_tiled_rows(tokens)};
    case KernelInput::Form::panels: return rows(kCodeRows);
  }
  return rows(kPanelRows);
}

void multiply_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y,
                   std::size_t stride) {
  const TypeKernels& kernels = find_stored_type(matrix).kernels();
  switch (x.form()) {
    case KernelInput::Form::floats: {
      const auto& floats = x.as<KernelInput::Floats>();
      if (floats.is_few) return multiply_few(matrix, first, last, {floats.get_token(0), floats.tokens}, y, stride);
      return multiply_panels(matrix, first, last, floats, y, stride);
    }
    case KernelInput::Form::words:
      return kernels.multiply_words(matrix, first, last, x.as<KernelInput::Words>(), y, stride);
    case KernelInput::Form::bytes:
      return kernels.multiply_bytes(matrix, first, last, x.as<KernelInput::Bytes>(), y, stride);
    case KernelInput::Form::tiles:
      return multiply_tiled_rows(matrix, first, last, x.as<KernelInput::Tiles>(), y, stride);
    case KernelInput::Form::panels:
      return multiply_code_rows(matrix, first, last, x.as<KernelInput::Panels>(), y, stride);
  }
}

}  // namespace poise
