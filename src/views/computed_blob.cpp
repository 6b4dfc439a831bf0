#include "views/computed_blob.hpp"

#include <cmath>

#include "io/threads.hpp"
#include "numeric/scan.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

bool has_infinity(const Part& part) {
  const bool may_have = is_floating(part.dtype) && info(part.dtype).bits >= 8;
  return may_have && has_number(part, [](double number) { return std::isinf(number); });
}

class FunctionBlob final : public FloatBlob {
 public:
  FunctionBlob(std::uint64_t elements, BlobPtr data, std::vector<BlobPtr> kept, ComputeElements compute)
      : FloatBlob(elements), data_(std::move(data)), kept_(std::move(kept)), compute_(std::move(compute)) {}

  bool seekable() const override { return data_->seekable(); }

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    const auto loaded =
        loaded_.get([this] { return std::make_shared<const std::vector<LoadedBlob>>(kept_.begin(), kept_.end()); });
    compute_(*data_, *loaded, first, out);
  }
  void drop_caches() const override { loaded_.release(); }

 private:
  BlobPtr data_;
  std::vector<BlobPtr> kept_;
  ComputeElements compute_;
  LazyValue<const std::vector<LoadedBlob>> loaded_;
};

class FiniteBlob final : public Blob {
 public:
  FiniteBlob(std::string what, BlobPtr numbers, std::vector<Part> inputs)
      : what_(std::move(what)), numbers_(std::move(numbers)), inputs_(std::move(inputs)) {}

  std::uint64_t size() const override { return numbers_->size(); }
  bool seekable() const override { return numbers_->seekable(); }
  std::uint64_t grain() const override { return numbers_->grain(); }

  // Checks each number whose bytes are all read.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    numbers_->read(offset, out);
    const auto skipped = static_cast<std::size_t>(-offset % sizeof(float));
    if (out.size() < skipped + sizeof(float)) return;
    const auto whole = out.subspan(skipped, (out.size() - skipped) / sizeof(float) * sizeof(float));
    const BadValues bad = find_bad_values(DType::f32, whole);
    if (bad.count == 0) return;
    for (std::size_t i = bad.first * sizeof(float); i < whole.size(); i += sizeof(float)) {
      if (!std::isinf(load_le<float>(whole.data() + i))) continue;
      if (inputs_have_infinities()) return;
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: element {} is too large for f32", what_, (offset + skipped + i) / sizeof(float)));
    }
  }

 private:
  bool inputs_have_infinities() const {
    return *infinities_.get(
        [this] { return std::make_shared<const bool>(std::ranges::any_of(inputs_, has_infinity)); });
  }

  std::string what_;
  BlobPtr numbers_;
  std::vector<Part> inputs_;
  LazyValue<const bool> infinities_;  // whether the inputs have infinities
};

}  // namespace

BlobPtr make_float_blob(std::uint64_t elements, BlobPtr data, std::vector<BlobPtr> kept, ComputeElements compute) {
  return std::make_shared<FunctionBlob>(elements, std::move(data), std::move(kept), std::move(compute));
}

bool has_number(const Part& part, bool (*is_wanted)(double)) {
  const auto stream = part.blob->stream();
  std::vector<std::byte> bytes(stream->best_read());
  std::vector<float> numbers;
  const std::size_t width = info(part.dtype).bits / 8;
  while (const std::size_t read = stream->read(bytes)) {
    const std::size_t count = read / width;
    if (part.dtype == DType::f64) {
      for (std::size_t i = 0; i < count; ++i) {
        if (is_wanted(load_le<double>(bytes.data() + i * width))) return true;
      }
      continue;
    }
    numbers.resize(count);
    widen(part.dtype, bytes.data(), numbers);
    if (std::ranges::any_of(numbers, [&](float number) { return is_wanted(static_cast<double>(number)); })) return true;
  }
  return false;
}

BlobPtr add_overflow_checks(std::string what, BlobPtr numbers, std::vector<Part> inputs) {
  return std::make_shared<FiniteBlob>(std::move(what), std::move(numbers), std::move(inputs));
}

}  // namespace poise
