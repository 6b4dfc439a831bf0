#include "api/imatrix_file.hpp"

#include <iterator>
#include <utility>

#include <poise/error.hpp>

#include "io/sink.hpp"

namespace poise {
namespace {

void add_sums(std::optional<Imatrix>& sum, Imatrix one) {
  if (sum) {
    add_imatrix(*sum, one);
  } else {
    sum = std::move(one);
  }
}

}  // namespace

Imatrix make_imatrix_file(const Model* model, std::string_view text, const std::filesystem::path& output,
                          const ImatrixFileOptions& options) {
  if (model == nullptr && options.add.empty())
    throw Error(ErrorKind::bad_argument, "imatrix: there is no model to measure, and no file to add");
  std::vector<std::filesystem::path> inputs = options.add;
  if (model != nullptr) inputs.insert(inputs.end(), model->origin.files.begin(), model->origin.files.end());
  FileOutput::check_replaceable(output, options.overwrite, inputs);
  std::optional<Imatrix> sum = add_imatrix_files(options.add);
  if (model != nullptr) {
    Imatrix measured = measure_imatrix(*model, text, options.measure, options.progress);
    if (sum) sum->chunk_size = measured.chunk_size;
    add_sums(sum, std::move(measured));
  }
  save_imatrix(*sum, output, options.overwrite);
  return *std::move(sum);
}

std::optional<Imatrix> add_imatrix_files(const std::vector<std::filesystem::path>& paths) {
  std::optional<Imatrix> sum;
  for (const std::filesystem::path& path : paths) {
    try {
      add_sums(sum, read_imatrix(path));
    } catch (const Error& error) {
      if (!error.path().empty()) throw;
      throw Error(error.kind(), error.message(), path.string());
    }
  }
  return sum;
}

}  // namespace poise
