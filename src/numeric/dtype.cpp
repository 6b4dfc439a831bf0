#include <poise/dtype.hpp>

#include <algorithm>
#include <array>

#include <poise/error.hpp>

namespace poise {
namespace {

constexpr std::string_view spell_name(std::string_view enumerator) {
  return enumerator == "boolean" ? "bool" : enumerator;
}

constexpr std::array kTable = {
#define POISE_DTYPE(name, bits, kind) DTypeInfo{DType::name, spell_name(#name), bits, DTypeKind::kind},
#include <poise/dtype.def>
#undef POISE_DTYPE
};

}  // namespace

const DTypeInfo& info(DType dtype) {
  const auto row = static_cast<std::size_t>(dtype);
  if (row >= kTable.size()) throw Error(ErrorKind::internal, "the element type is unknown");
  return kTable[row];
}

std::string_view to_string(DType dtype) { return dtype == DType::unknown ? "unknown" : info(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  const auto* row = std::ranges::find(kTable, name, &DTypeInfo::name);
  return row == kTable.end() ? std::nullopt : std::optional(row->dtype);
}

bool is_floating(DType dtype) { return dtype != DType::unknown && info(dtype).kind == DTypeKind::floating; }

bool is_integer(DType dtype) {
  if (dtype == DType::unknown) return false;
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer;
}

}  // namespace poise
