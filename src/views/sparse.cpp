// Checks sparse tensors, and makes them dense. Some rules follow from sizes, others need a pass over all indices.
#include "views/sparse.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/function_ref.hpp"
#include "io/extents.hpp"
#include "io/threads.hpp"
#include "numeric/integers.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

using Fault = std::optional<std::string>;

Fault find_parts_fault(const Tensor& tensor, std::initializer_list<std::string_view> roles) {
  for (const std::string_view role : roles) {
    if (tensor.part(role) == nullptr) return fmt::format("{} needs the part {}", to_string(tensor.layout), role);
  }
  if (tensor.parts.size() != roles.size())
    return fmt::format("{} has {} parts, found {}", to_string(tensor.layout), roles.size(), tensor.parts.size());
  return std::nullopt;
}

Fault find_index_type_fault(const Part& part) {
  if (is_integer(part.dtype)) return std::nullopt;
  return fmt::format("{}: expected an integer type, found {}", part.role, part.type_name());
}

Fault find_size_fault(const Part& part, std::optional<std::uint64_t> expected) {
  if (expected == part.blob->size()) return std::nullopt;
  if (!expected) return fmt::format("{}: its size overflows 64 bits", part.role);
  return fmt::format("{}: expected {} bytes, found {}", part.role, *expected, part.blob->size());
}

Fault find_values_fault(const Tensor& tensor, std::uint64_t nonzeros) {
  const Part& values = tensor.require("values");
  if (values.dtype == DType::unknown) return std::nullopt;
  return find_size_fault(values, packed_bytes(values.dtype, nonzeros));
}

std::uint64_t count_index_bytes(const Part& part) { return info(part.dtype).bits / 8; }

Fault find_csr_fault(const Tensor& tensor) {
  if (tensor.shape.size() != 2)
    return fmt::format("compressed sparse rows have rank 2, found the shape {}", to_string(tensor.shape));
  if (auto fault = find_parts_fault(tensor, {"values", "indices", "indptr"})) return fault;
  const Part& indices = tensor.require("indices");
  const Part& indptr = tensor.require("indptr");
  if (auto fault = find_index_type_fault(indices)) return fault;
  if (auto fault = find_index_type_fault(indptr)) return fault;
  const auto pointers = checked_add(tensor.shape[0], 1);
  if (auto fault = find_size_fault(indptr, pointers ? checked_mul(*pointers, count_index_bytes(indptr)) : std::nullopt))
    return fault;
  const std::uint64_t width = count_index_bytes(indices);
  if (indices.blob->size() % width != 0)
    return fmt::format("indices: {} bytes are not a whole number of {}", indices.blob->size(), indices.type_name());
  return find_values_fault(tensor, indices.blob->size() / width);
}

Fault find_coo_fault(const Tensor& tensor) {
  if (tensor.shape.empty()) return "a coordinate list has rank 1 or more, found a scalar";
  if (auto fault = find_parts_fault(tensor, {"values", "coords"})) return fault;
  const Part& coords = tensor.require("coords");
  if (auto fault = find_index_type_fault(coords)) return fault;
  const std::uint64_t width = count_index_bytes(coords) * tensor.shape.size();
  if (coords.blob->size() % width != 0) {
    return fmt::format("coords: {} bytes are not a whole number of coordinates of rank {}", coords.blob->size(),
                       tensor.shape.size());
  }
  return find_values_fault(tensor, coords.blob->size() / width);
}

// Throws invalid_file. `problem` begins with the role of the faulty part, if there is one.
[[noreturn]] void fail_sparse(const Tensor& tensor, std::string_view problem) {
  const Part* const part = tensor.part(problem.substr(0, problem.find(':')));
  Place place = part != nullptr ? find_place(*part->blob) : Place();
  for (const Part& any : tensor.parts) place = place.offset ? place : find_place(*any.blob);
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor.name, problem), place.path, place.offset);
}

// Receives a faulty element of a part of indices; `problem` describes it.
using Report = FunctionRef<void(const Part& part, std::uint64_t element, FunctionRef<std::string()> problem)>;

// Calls visit(number) once for each number that occurs several times.
template <typename Number, typename Visit>
void visit_repeated(std::vector<Number> numbers, const Visit& visit) {
  std::ranges::sort(numbers);
  for (auto twice = std::ranges::adjacent_find(numbers); twice != numbers.end();
       twice = std::adjacent_find(std::ranges::upper_bound(twice, numbers.end(), *twice), numbers.end()))
    visit(*twice);
}

// Checks the columns of one row. If the rules allow any order and the columns do not ascend, sorts them to find
// duplicates.
template <typename Column>
void check_row(const Tensor& tensor, const LoadedBlob& indices, std::uint64_t row, std::uint64_t begin,
               std::uint64_t end, SparseRules rules, const Report& report) {
  const Part& part = tensor.require("indices");
  const std::uint64_t columns = tensor.shape[1];
  const auto is_inside = [&](Column column) { return !std::cmp_less(column, 0) && std::cmp_less(column, columns); };
  const auto describe_repeated_column = [&](Column column) {
    return fmt::format("indices: column {} appears twice in row {}", column, row);
  };
  bool ascending = true;
  std::optional<Column> previous;
  for (std::uint64_t i = begin; i < end; ++i) {
    const Column column = indices.at<Column>(i);
    if (!is_inside(column)) {
      report(part, i, [&] {
        return fmt::format("indices: element {} in row {} is in column {}, there are {}", i, row, column, columns);
      });
      continue;
    }
    const auto before = std::exchange(previous, column);
    if (!before || *before < column) continue;
    if (rules != SparseRules::ascending) {
      ascending = false;
    } else if (*before == column) {
      report(part, i, [&] { return describe_repeated_column(column); });
    } else {
      report(part, i,
             [&] { return fmt::format("indices: the columns of row {} do not ascend at element {}", row, i); });
    }
  }
  if (ascending) return;
  std::vector<Column> sorted;
  for (std::uint64_t i = begin; i < end; ++i) {
    if (is_inside(indices.at<Column>(i))) sorted.push_back(indices.at<Column>(i));
  }
  visit_repeated(std::move(sorted),
                 [&](Column column) { report(part, begin, [&] { return describe_repeated_column(column); }); });
}

void check_csr(const Tensor& tensor, SparseRules rules, const Report& report) {
  const Part& indices_part = tensor.require("indices");
  const Part& indptr_part = tensor.require("indptr");
  const LoadedBlob indices(indices_part.blob);
  const LoadedBlob indptr(indptr_part.blob);
  const std::uint64_t nonzeros = indices.bytes().size() / count_index_bytes(indices_part);
  visit_integer(indptr_part.dtype, [&](auto pointer_zero) {
    using Pointer = decltype(pointer_zero);
    bool rising = true;
    Pointer least = 0;  // the smallest valid next pointer; each wrong pointer is reported once
    const auto report_pointer = [&](std::uint64_t element, FunctionRef<std::string()> problem) {
      rising = false;
      report(indptr_part, element, problem);
    };
    const auto is_inside = [&](Pointer pointer) {
      return !std::cmp_less(pointer, 0) && !std::cmp_greater(pointer, nonzeros);
    };
    if (indptr.at<Pointer>(0) != 0)
      report_pointer(0, [&] { return fmt::format("indptr: it begins with {}, expected 0", indptr.at<Pointer>(0)); });
    for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
      const Pointer begin = indptr.at<Pointer>(row);
      const Pointer end = indptr.at<Pointer>(row + 1);
      if (is_inside(begin)) least = begin;
      if (end < least) {
        report_pointer(row + 1,
                       [&] { return fmt::format("indptr: it falls from {} to {} after row {}", least, end, row); });
      } else if (std::cmp_greater(end, nonzeros)) {
        report_pointer(row + 1, [&] {
          return fmt::format("indptr: row {} ends at element {}, there are {}", row, end, nonzeros);
        });
      } else if (begin == least) {
        visit_integer(indices_part.dtype, [&](auto column_zero) {
          check_row<decltype(column_zero)>(tensor, indices, row, static_cast<std::uint64_t>(begin),
                                           static_cast<std::uint64_t>(end), rules, report);
        });
      }
    }
    const Pointer last = indptr.at<Pointer>(tensor.shape[0]);
    if (rising && std::cmp_not_equal(last, nonzeros)) {
      report_pointer(tensor.shape[0], [&] {
        return fmt::format("indptr: it ends with {}, expected {}, the number of elements", last, nonzeros);
      });
    }
  });
}

void check_coo(const Tensor& tensor, const Report& report) {
  const Part& part = tensor.require("coords");
  const LoadedBlob coords(part.blob);
  const std::size_t rank = tensor.shape.size();
  const std::uint64_t nonzeros = coords.bytes().size() / count_index_bytes(part) / rank;
  visit_integer(part.dtype, [&](auto zero) {
    using Coordinate = decltype(zero);
    // Returns the first dimension in which an element is out of bounds.
    const auto find_dimension_outside = [&](std::uint64_t i) -> std::optional<std::size_t> {
      for (std::size_t d = 0; d < rank; ++d) {
        const Coordinate coordinate = coords.at<Coordinate>(d * nonzeros + i);
        if (std::cmp_less(coordinate, 0) || std::cmp_greater_equal(coordinate, tensor.shape[d])) return d;
      }
      return std::nullopt;
    };
    // Returns the cell in row-major numbering.
    const auto compute_cell = [&](std::uint64_t i) {
      std::uint64_t number = 0;
      for (std::size_t d = 0; d < rank; ++d)
        number = number * tensor.shape[d] + static_cast<std::uint64_t>(coords.at<Coordinate>(d * nonzeros + i));
      return number;
    };
    bool ascending = true;
    std::optional<std::uint64_t> previous;
    for (std::uint64_t i = 0; i < nonzeros; ++i) {
      if (const auto d = find_dimension_outside(i)) {
        report(part, *d * nonzeros + i, [&] {
          return fmt::format("coords: element {} is at {} in dimension {}, which has {}", i,
                             coords.at<Coordinate>(*d * nonzeros + i), *d, tensor.shape[*d]);
        });
        continue;
      }
      const std::uint64_t number = compute_cell(i);
      ascending = ascending && (!previous || *previous < number);
      previous = number;
    }
    if (ascending) return;
    std::vector<std::uint64_t> cells;
    for (std::uint64_t i = 0; i < nonzeros; ++i) {
      if (!find_dimension_outside(i)) cells.push_back(compute_cell(i));
    }
    visit_repeated(std::move(cells), [&](std::uint64_t repeated) {
      report(part, 0, [&] {
        return fmt::format(
            "coords: cell {} appears twice, counted row by row (PyTorch's x.coalesce() adds such values up)", repeated);
      });
    });
  });
}

void check_indices(const Tensor& tensor, SparseRules rules, const Report& report) {
  if (const auto fault = find_sparse_structure_fault(tensor)) fail_sparse(tensor, *fault);
  tensor.layout == Layout::sparse_csr ? check_csr(tensor, rules, report) : check_coo(tensor, report);
}

class WidenedIndices final : public Blob {
 public:
  WidenedIndices(std::string name, BlobPtr blob, DType from)
      : name_(std::move(name)), blob_(std::move(blob)), from_(from), width_(info(from).bits / 8) {}

  std::uint64_t size() const override { return blob_->size() / width_ * sizeof(std::uint64_t); }
  bool seekable() const override { return blob_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> narrow;
    std::vector<std::uint64_t> wide;
    read_units(offset, out, sizeof(std::uint64_t), kBlockSize, [&](std::uint64_t first, std::size_t count) {
      narrow.resize(count * width_);
      blob_->read(first * width_, narrow);
      wide.resize(count);
      visit_integer(from_, [&](auto zero) {
        for (std::size_t i = 0; i < count; ++i) {
          const auto index = load_le<decltype(zero)>(narrow.data() + i * width_);
          if (std::cmp_less(index, 0))
            throw Error(ErrorKind::invalid_file, fmt::format("{}: index {} is {}", name_, first + i, index));
          wide[i] = static_cast<std::uint64_t>(index);
        }
      });
      return std::as_bytes(std::span(wide));
    });
  }

 private:
  std::string name_;
  BlobPtr blob_;
  DType from_;
  std::uint64_t width_;
};

template <Layout kForm>
std::optional<TensorLayout> read_sparse(const Tensor&, std::string_view name) {
  return name == to_string(kForm) ? std::optional<TensorLayout>(kForm) : std::nullopt;
}

void check_sparse(const Tensor& tensor) {
  if (const auto fault = find_sparse_structure_fault(tensor)) fail_parts(tensor, *fault);
}

bool has_float_values(const Tensor& tensor) { return is_floating(tensor.require("values").dtype); }

// Returns true if the values are floating-point numbers of less than a byte. They are converted to float32 first, since
// densify() copies whole bytes.
bool has_narrow_values(const Tensor& tensor) {
  return has_float_values(tensor) && info(tensor.require("values").dtype).bits < 8;
}

DType find_sparse_type(const Tensor& tensor) {
  return has_narrow_values(tensor) ? DType::f32 : tensor.require("values").dtype;
}

BlobPtr make_sparse_elements(const Tensor& tensor) {
  return densify(has_narrow_values(tensor) ? cast_values(tensor, DType::f32) : tensor);
}

std::string describe_sparse_type(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.layout), tensor.require("values").type_name());
}

// LayoutType::type_meaning: the same text for all types of indices, which mean the same; std::nullopt for values.
std::optional<std::string> find_sparse_type_meaning(const Part& part) {
  return part.role == "values" ? std::nullopt : std::optional<std::string>("");
}

template <Layout kForm>
constexpr LayoutType make_sparse_layout_type(std::string_view name) {
  return {
      .name = name,
      .read = read_sparse<kForm>,
      .check = check_sparse,
      .needs_known_parts = true,
      .has_float_elements = has_float_values,
      .element_type = find_sparse_type,
      .elements = make_sparse_elements,
      .stored_type = describe_sparse_type,
      .type_meaning = find_sparse_type_meaning,
  };
}

// Holds the elements of a tensor by cell. The constructor validates the tensor.
class Entries {
 public:
  explicit Entries(const Tensor& tensor)
      : values_(tensor.require("values").blob), entries_(read_sparse_entries(tensor)) {}

  const std::byte* get_bytes(const SparseEntry& entry, std::uint64_t width) const {
    return values_.bytes().data() + entry.place * width;
  }

  // Returns the entries with cells in [begin, end).
  std::span<const SparseEntry> find_between(std::uint64_t begin, std::uint64_t end) const {
    const auto first = std::ranges::lower_bound(entries_, begin, {}, &SparseEntry::cell);
    const auto last = std::ranges::lower_bound(entries_, end, {}, &SparseEntry::cell);
    return {first, last};
  }

 private:
  LoadedBlob values_;
  std::vector<SparseEntry> entries_;
};

class DensifiedBlob final : public Blob {
 public:
  DensifiedBlob(const Tensor& tensor, std::uint64_t width)
      : tensor_(tensor), width_(width), size_(tensor.elements() * width) {}

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto entries = entries_.get([this] { return std::make_shared<const Entries>(tensor_); });
    std::ranges::fill(out, std::byte{0});
    const std::uint64_t end = offset + out.size();
    for (const SparseEntry& entry : entries->find_between(offset / width_, (end + width_ - 1) / width_)) {
      const std::uint64_t begin_byte = std::max(entry.cell * width_, offset);
      const std::uint64_t end_byte = std::min(entry.cell * width_ + width_, end);
      std::copy_n(entries->get_bytes(entry, width_) + (begin_byte - entry.cell * width_), end_byte - begin_byte,
                  out.begin() + static_cast<std::ptrdiff_t>(begin_byte - offset));
    }
    if (end == size_) entries_.release();
  }

 private:
  Tensor tensor_;
  std::uint64_t width_;
  std::uint64_t size_;
  LazyValue<const Entries> entries_;
};

void load_csr_entries(const Tensor& tensor, std::vector<SparseEntry>& entries) {
  const Part& indices_part = tensor.require("indices");
  const LoadedBlob indices(indices_part.blob);
  const Part& indptr_part = tensor.require("indptr");
  const LoadedBlob indptr(indptr_part.blob);
  visit_integer(indices_part.dtype, [&](auto zero) {
    using Column = decltype(zero);
    for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
      const std::uint64_t end = indptr.index_at(indptr_part.dtype, row + 1);
      for (std::uint64_t i = indptr.index_at(indptr_part.dtype, row); i < end; ++i)
        entries.push_back({row * tensor.shape[1] + indices.index_at<Column>(i), i});
    }
  });
}

void load_coo_entries(const Tensor& tensor, std::vector<SparseEntry>& entries) {
  const Part& part = tensor.require("coords");
  const LoadedBlob coords(part.blob);
  visit_integer(part.dtype, [&](auto zero) {
    using Coordinate = decltype(zero);
    const std::uint64_t count = coords.bytes().size() / sizeof(Coordinate) / tensor.shape.size();
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t cell = 0;
      for (std::size_t d = 0; d < tensor.shape.size(); ++d)
        cell = cell * tensor.shape[d] + coords.index_at<Coordinate>(d * count + i);
      entries.push_back({cell, i});
    }
  });
}

}  // namespace

const LayoutType layouts::sparse_csr = make_sparse_layout_type<Layout::sparse_csr>("sparse_csr");
const LayoutType layouts::sparse_coo = make_sparse_layout_type<Layout::sparse_coo>("sparse_coo");

bool is_sparse(const Tensor& tensor) {
  return tensor.layout == Layout::sparse_csr || tensor.layout == Layout::sparse_coo;
}

std::optional<std::string> find_sparse_structure_fault(const Tensor& tensor) {
  return tensor.layout == Layout::sparse_csr ? find_csr_fault(tensor) : find_coo_fault(tensor);
}

std::uint64_t count_stored_elements(const Tensor& tensor) {
  if (tensor.layout == Layout::sparse_csr)
    return tensor.require("indices").blob->size() / count_index_bytes(tensor.require("indices"));
  const Part& coords = tensor.require("coords");
  return coords.blob->size() / count_index_bytes(coords) / tensor.shape.size();
}

SparseRules get_sparse_rules(const Tensor& tensor) {
  return tensor.layout.is_ascending() ? SparseRules::ascending : SparseRules::any_order;
}

void validate_sparse(const Tensor& tensor, SparseRules rules) {
  check_indices(tensor, rules, [&](const Part& part, std::uint64_t element, FunctionRef<std::string()> problem) {
    const auto at = part.blob->stored_byte(element * count_index_bytes(part));
    if (!at) fail_sparse(tensor, problem());
    throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor.name, problem()), at->source->name(),
                at->offset);
  });
}

SparseFaults find_sparse_faults(const Tensor& tensor, SparseRules rules, std::size_t most) {
  SparseFaults faults;
  check_indices(tensor, rules, [&](const Part& part, std::uint64_t element, FunctionRef<std::string()> problem) {
    ++faults.count;
    if (faults.first.size() < most) faults.first.push_back({problem(), &part, element * count_index_bytes(part)});
  });
  return faults;
}

BlobPtr widen_indices(const std::string& tensor, const Part& part) {
  return std::make_shared<WidenedIndices>(fmt::format("tensor {}: {}", tensor, part.role), part.blob, part.dtype);
}

BlobPtr densify(const Tensor& tensor) {
  const Part& values = tensor.require("values");
  if (values.dtype == DType::unknown || info(values.dtype).bits % 8 != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: values of type {} cannot be made dense", tensor.name, values.type_name()));
  }
  const auto bytes = packed_bytes(values.dtype, tensor.elements());
  if (!bytes)
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: shape {} is too large to be made dense", tensor.name, to_string(tensor.shape)));
  if (*bytes == 0)
    validate_sparse(tensor, get_sparse_rules(tensor));  // an empty tensor is never read, so it is checked here
  return std::make_shared<DensifiedBlob>(tensor, info(values.dtype).bits / 8);
}

std::vector<SparseEntry> read_sparse_entries(const Tensor& tensor) {
  validate_sparse(tensor, get_sparse_rules(tensor));
  std::vector<SparseEntry> entries;
  if (tensor.layout == Layout::sparse_csr) {
    load_csr_entries(tensor, entries);
  } else {
    load_coo_entries(tensor, entries);
  }
  if (!std::ranges::is_sorted(entries, {}, &SparseEntry::cell)) std::ranges::sort(entries, {}, &SparseEntry::cell);
  return entries;
}

}  // namespace poise
