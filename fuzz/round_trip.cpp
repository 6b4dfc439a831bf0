// Makes a model from the bytes, writes it in each format that can hold it, and reads it again: the model is the same,
// and writing it again gives the same file.
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "family/tied_output.hpp"
#include "formats/format.hpp"
#include "io/sink.hpp"
#include "random_model.hpp"
#include "support/memory_output.hpp"
#include "syntax/cbor.hpp"
#include "target.hpp"
#include "views/affine.hpp"
#include "views/dense.hpp"

using namespace poise;

namespace {

using Options = WriteOptions;

// Chooses random options among those that the format honours.
Options choose_options(fuzz::Dice& dice, const Format& format) {
  Options options;
  if (format.options.zstd_level && dice.chance()) options.zstd_level = 1;
  if (format.options.align) options.align = 4096;
  if (format.options.digest && dice.chance())
    options.digest = dice.chance() ? DigestAlgorithm::sha256 : DigestAlgorithm::none;
  return options;
}

std::vector<std::byte> write_to_memory(const Model& model, const Format& format, const Options& options) {
  MemoryOutput output(fmt::format("fuzz{}", format.info.extension));
  write_model(model, format, output, options);
  return output.take();
}

// Compares entries in any order of keys.
bool have_same_keys(const Attributes& a, const Attributes& b) { return cbor::encode(a) == cbor::encode(b); }

// GGUF stores vectors of known families as float32, as llama.cpp requires.
bool is_widened(const Tensor& tensor, const Part& before, const Part& after) {
  return tensor.layout == Layout::dense && tensor.shape.size() < 2 && is_floating(before.dtype) &&
         info(before.dtype).bits < 32 && after.dtype == DType::f32;
}

// Compares the parts, and everything else that every format with the layout keeps. ALT packs codes of four bits, two to
// a byte.
std::string find_difference(const Tensor& unpacked_a, const Tensor& unpacked_b, bool lossless) {
  const Tensor a = make_packed_qint4_view(unpacked_a);
  const Tensor b = make_packed_qint4_view(unpacked_b);
  if (a.shape != b.shape) return "shape";
  if (a.layout != b.layout) return "layout";
  if ((a.layout.affine() != nullptr ? a.layout.affine()->get() : Affine{}) !=
      (b.layout.affine() != nullptr ? b.layout.affine()->get() : Affine{}))
    return "scale";
  // The two versions of zTensor describe groups with different attributes.
  if (lossless && a.layout != Layout::quantized_group && !have_same_keys(a.attributes, b.attributes))
    return "attributes";
  if (a.parts.size() != b.parts.size()) return "number of parts";
  for (const Part& part : a.parts) {
    const Part* other = b.part(part.role);
    if (other == nullptr) return part.role + " (absent)";
    const bool widened = is_widened(a, part, *other);
    if (part.dtype != other->dtype && !widened) return part.role + " (type)";
    const BlobPtr expected = widened ? make_dense_blob(a, DType::f32) : BlobPtr(part.blob);
    if (read_all(*expected) != read_all(*other->blob)) return part.role + " (bytes)";
  }
  return {};
}

// ALT and safetensors' metadata take the number of rows from elsewhere.
std::optional<Config> remove_rows(std::optional<Config> config) {
  if (config) config->vocab_size = 0;
  return config;
}

std::string find_difference(const Model& a, const Model& b, bool lossless) {
  if (a.size() != b.size()) return fmt::format("{} tensors, {} expected", b.size(), a.size());
  const bool is_alone = !lossless && a.size() == 1;  // the format may have dropped its name
  for (const Tensor& tensor : a.tensors()) {
    const Tensor* other = is_alone ? &b.tensors().front() : b.find(tensor.name);
    if (other == nullptr) return fmt::format("tensor {}: absent", tensor.name);
    if (const std::string what = find_difference(tensor, *other, lossless); !what.empty())
      return fmt::format("tensor {}: {}", tensor.name, what);
  }
  if (!lossless) return {};
  if (a.card != b.card) return "card";
  if (remove_rows(a.config) != remove_rows(b.config)) return "config";
  if (a.vocabulary != b.vocabulary) return "vocabulary";
  if (!have_same_keys(a.attributes, b.attributes)) return "attributes";
  return {};
}

void round_trip(const Model& model, const Format& format, const Options& options) {
  std::vector<std::byte> file;
  try {
    file = write_to_memory(model, format, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported)
      fuzz::report(fmt::format("{}: writing: {}", format.info.name, error.what()));
    return;
  }
  const bool lossless = losses_of(model, format, options).empty();
  try {
    Model reread = open(fuzz::make_source(file, fmt::format("fuzz{}", format.info.extension)));
    if (const std::string what = find_difference(model, reread, lossless); !what.empty())
      fuzz::report(fmt::format("{}: {} differs", format.info.name, what));
    reread.origin.path.clear();  // the model that was written has no path
    if (write_to_memory(reread, format, options) != file)
      fuzz::report(fmt::format("{}: written again, the file differs", format.info.name));
  } catch (const Error& error) {
    fuzz::report(fmt::format("{}: its own file: {}", format.info.name, error.what()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Dice dice(fuzz::bytes_of(data, size));
  fuzz::expect_sound(size, [&] {
    Model model = fuzz::make_random_model(dice);
    // Opening a file does the same: it removes a tie that the stored matrices contradict.
    if (auto resolved = resolve_tied_output(model)) model = *std::move(resolved);
    for (const Format* format : list_all_formats()) {
      const bool is_file = format->explain_refusal == nullptr;  // fuzz/huggingface.cpp has directories
      if (format->prepare != nullptr && is_file) round_trip(model, *format, choose_options(dice, *format));
    }
  });
  return 0;
}
