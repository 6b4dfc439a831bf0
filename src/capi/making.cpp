// Implements the calls that make adapters, deltas and importance matrices, and the one that downloads a model.
#include <utility>

#include <poise/delta.hpp>
#include <poise/fetch.hpp>
#include <poise/imatrix.hpp>
#include <poise/make_lora.hpp>

#include "api/imatrix_file.hpp"
#include "api/report_values.hpp"
#include "capi/face.hpp"

using namespace poise::capi;

namespace {

using poise::Attributes;
using poise::Value;

Value::Array list_texts(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

// Sets how a file is written, from the fields that several structs of options share.
template <typename Options>
void set_write_options(const Options& from, poise::WriteOptions& options) {
  set_storage_options(from.storage, options);
  options.overwrite = from.overwrite != 0;
  options.progress = convert_progress(from.progress);
}

poise::ExtractLoraOptions read_extract_options(const poise_extract_lora_options* given) {
  const poise_extract_lora_options from = read_options_or(given, POISE_EXTRACT_LORA_OPTIONS_INIT);
  poise::ExtractLoraOptions options;
  options.rank = from.rank;
  options.only = copy_texts(from.only, from.only_count, "only");
  options.skip = copy_texts(from.skip, from.skip_count, "skip");
  options.format = copy_optional_text(from.format).value_or("");
  options.verify = from.verify != 0;
  options.dry_run = from.dry_run != 0;
  options.read = make_read_options(from.io);
  set_write_options(from, options.write);
  return options;
}

std::string make_extraction_json(const poise::ExtractLoraReport& report) {
  return poise::to_json(Attributes{{"matrices", poise::list_attributes(report.matrices)},
                                   {"equal", std::uint64_t{report.equal}},
                                   {"warnings", list_texts(report.warnings)},
                                   {"losses", list_texts(report.losses)}});
}

std::string make_delta_json(const poise::DeltaReport& report) {
  return poise::to_json(Attributes{{"changed", poise::list_attributes(report.changed)},
                                   {"removed", list_texts(report.removed)},
                                   {"fields", list_texts(report.fields)}});
}

}  // namespace

poise_status poise_extract_lora(const char* base, const char* tuned, const char* output,
                                const poise_extract_lora_options* options, poise_lora_report* report,
                                poise_error* error) {
  return catch_errors(error, [&] {
    if (report != nullptr) check_size(*report);
    const poise::ExtractLoraReport done =
        poise::extract_lora(require_text(base, "base"), require_text(tuned, "tuned"), require_text(output, "output"),
                            read_extract_options(options));
    if (report == nullptr) return;
    poise_lora_report out = POISE_LORA_REPORT_INIT;
    copy_text(done.format, out.format);
    out.matrices = done.matrices.size();
    out.bytes_out = done.bytes_out;
    out.captured = done.captured;
    out.details = copy_text_out(make_extraction_json(done));
    copy_struct_out(report, "report", out);
  });
}

poise_status poise_convert_lora(const char* adapter, const char* output, const poise_convert_lora_options* options,
                                poise_lora_report* report, poise_error* error) {
  return catch_errors(error, [&] {
    if (report != nullptr) check_size(*report);
    const poise_convert_lora_options from = read_options_or(options, POISE_CONVERT_LORA_OPTIONS_INIT);
    poise::ConvertLoraOptions chosen;
    chosen.base = copy_optional_text(from.base).value_or("");
    chosen.format = copy_optional_text(from.format).value_or("");
    chosen.dry_run = from.dry_run != 0;
    chosen.read = make_read_options(from.io);
    set_write_options(from, chosen.write);
    const poise::ConvertLoraReport done =
        poise::convert_lora(require_text(adapter, "adapter"), require_text(output, "output"), chosen);
    if (report == nullptr) return;
    poise_lora_report out = POISE_LORA_REPORT_INIT;
    copy_text(done.format, out.format);
    out.matrices = done.matrices;
    out.bytes_out = done.bytes_out;
    out.captured = 1;
    out.details = copy_text_out(
        poise::to_json(Attributes{{"warnings", list_texts(done.warnings)}, {"losses", list_texts(done.losses)}}));
    copy_struct_out(report, "report", out);
  });
}

poise_status poise_make_delta(const char* base, const char* tuned, const char* output,
                              const poise_delta_options* options, poise_delta_report* report, poise_error* error) {
  return catch_errors(error, [&] {
    if (report != nullptr) check_size(*report);
    const poise_delta_options from = read_options_or(options, POISE_DELTA_OPTIONS_INIT);
    poise::DeltaOptions chosen;
    chosen.read = make_read_options(from.io);
    chosen.dry_run = from.dry_run != 0;
    set_write_options(from, chosen.write);
    if (from.storage != nullptr && !chosen.write.zstd_level) chosen.write.zstd_level = 0;
    const poise::DeltaReport done = poise::make_delta(require_text(base, "base"), require_text(tuned, "tuned"),
                                                      require_text(output, "output"), chosen);
    if (report == nullptr) return;
    poise_delta_report out = POISE_DELTA_REPORT_INIT;
    copy_text(done.base, out.base);
    out.equal = done.equal;
    out.changed = done.changed.size();
    out.bytes_in = done.bytes_in;
    out.bytes_out = done.bytes_out;
    out.seconds = done.seconds;
    out.details = copy_text_out(make_delta_json(done));
    copy_struct_out(report, "report", out);
  });
}

poise_status poise_measure_imatrix(const poise_model* model, const char* text, size_t text_size, const char* output,
                                   const poise_imatrix_options* options, poise_imatrix_report* report,
                                   poise_error* error) {
  return catch_errors(error, [&] {
    if (report != nullptr) check_size(*report);
    const poise_imatrix_options from = read_options_or(options, POISE_IMATRIX_OPTIONS_INIT);
    if (from.threads > UINT32_MAX) refuse(fmt::format("threads is {}, expected at most {}", from.threads, UINT32_MAX));
    poise::ImatrixFileOptions chosen;
    chosen.measure.chunk_size = from.chunk_size;
    if (from.chunks != 0) chosen.measure.chunks = from.chunks;
    chosen.measure.dataset = copy_optional_text(from.dataset).value_or("");
    chosen.measure.threads = static_cast<unsigned>(from.threads);
    chosen.measure.output = from.process_output != 0;
    chosen.measure.exact = from.exact != 0;
    for (std::string& path : copy_texts(from.add, from.add_count, "add")) chosen.add.emplace_back(std::move(path));
    chosen.overwrite = from.overwrite != 0;
    chosen.progress = convert_progress(from.progress);
    if (model == nullptr && text != nullptr) refuse("text is given without a model: model is NULL");
    const std::string_view words = model == nullptr ? std::string_view() : view_input(text, text_size);
    const poise::Imatrix made = poise::make_imatrix_file(model == nullptr ? nullptr : &model->model, words,
                                                         require_text(output, "output"), chosen);
    if (report == nullptr) return;
    poise_imatrix_report out = POISE_IMATRIX_REPORT_INIT;
    out.entries = made.entries.size();
    out.chunks = made.count_chunks();
    out.chunk_size = made.chunk_size;
    out.details = copy_text_out(
        poise::to_json(Attributes{{"datasets", list_texts(made.datasets)},
                                  {"unused_experts", poise::list_attributes(poise::find_imatrix_gaps(made))}}));
    copy_struct_out(report, "report", out);
  });
}

poise_status poise_fetch(const char* url, const poise_fetch_options* options, poise_fetch_report* report,
                         poise_error* error) {
  return catch_errors(error, [&] {
    if (report != nullptr) check_size(*report);
    const poise_fetch_options from = read_options_or(options, POISE_FETCH_OPTIONS_INIT);
    poise::FetchOptions chosen;
    chosen.output = copy_optional_text(from.output).value_or("");
    chosen.only = copy_texts(from.only, from.only_count, "only");
    chosen.overwrite = from.overwrite != 0;
    chosen.parallel = from.parallel;
    chosen.progress = convert_progress(from.progress);
    const poise::FetchReport done = poise::fetch(std::string(require_text(url, "url")), chosen);
    if (report == nullptr) return;
    poise_fetch_report out = POISE_FETCH_REPORT_INIT;
    copy_text(done.commit, out.commit);
    out.files = done.files;
    out.kept = done.kept;
    out.bytes = done.bytes;
    out.bytes_kept = done.bytes_kept;
    out.directory = copy_text_out(done.directory.native());
    copy_struct_out(report, "report", out);
  });
}
