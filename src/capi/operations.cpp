// Implements the calls that read or write whole files (verify, hash, statistics, report, convert), and small calls
// about statuses, formats and element types.
#include <algorithm>
#include <cmath>
#include <limits>

#include <poise/divergence.hpp>
#include <poise/hash.hpp>
#include <poise/report.hpp>
#include <poise/statistics.hpp>
#include <poise/verify.hpp>

#include "capi/face.hpp"
#include "ops/block_recipe.hpp"
#include "ops/conversion.hpp"

using namespace poise::capi;

namespace {

using poise::Attributes;
using poise::Value;

[[noreturn]] void throw_cancelled() { throw poise::Error(poise::ErrorKind::cancelled, "cancelled"); }

poise::StoredType parse_stored_type(const char* name, const char* parameter, const char* first, const char* last) {
  const auto type = poise::stored_type_from_name(name);
  if (!type) {
    refuse(fmt::format("{} is \"{}\", expected {}qint8 or qint4 (:range, :mse), group8 or group4 (:SIZE), {}",
                       parameter, name, first, last));
  }
  return *type;
}

poise::DType convert_floating_type(poise_dtype dtype) {
  if (dtype == POISE_F32 || dtype == POISE_F16 || dtype == POISE_BF16) return convert_dtype(dtype);
  refuse(fmt::format("dtype is {}, expected POISE_F32, POISE_F16 or POISE_BF16", static_cast<int>(dtype)));
}

poise::Layout convert_sparse_layout(poise_layout layout) {
  if (layout == POISE_SPARSE_CSR) return poise::Layout::sparse_csr;
  if (layout == POISE_SPARSE_COO) return poise::Layout::sparse_coo;
  refuse(fmt::format("sparse is {}, expected POISE_SPARSE_CSR or POISE_SPARSE_COO", static_cast<int>(layout)));
}

poise::SizeBudget read_budget(const poise_convert_options& from) {
  if ((from.output_size != 0) == (from.bits_per_weight != 0)) {
    refuse(fmt::format("quantize \"auto\" needs output_size or bits_per_weight; found {}",
                       from.output_size != 0 ? "both" : "neither"));
  }
  if (from.bits_per_weight != 0 && !(from.bits_per_weight > 0 && std::isfinite(from.bits_per_weight)))
    refuse(fmt::format("bits_per_weight is {}, expected a number above 0", from.bits_per_weight));
  poise::SizeBudget budget;
  if (from.output_size != 0) budget.bytes = from.output_size;
  if (from.bits_per_weight != 0) budget.bits_per_weight = from.bits_per_weight;
  if (const auto text = copy_optional_text(from.text)) budget.divergence = poise::measure_on_text_file(*text);
  return budget;
}

poise::ConvertOptions read_convert_options(const poise_convert_options* given) {
  const poise_convert_options from = read_options_or(given, POISE_CONVERT_OPTIONS_INIT);
  poise::ConvertOptions options;
  options.format = copy_optional_text(from.format).value_or("");
  if (from.dtype != POISE_DTYPE_UNKNOWN) options.dtype = convert_floating_type(from.dtype);
  if (from.quantize != nullptr && poise::is_block_recipe(from.quantize)) {
    options.recipe = from.quantize;
  } else if (from.quantize != nullptr && std::string_view(from.quantize) == "auto") {
    options.budget = read_budget(from);
  } else if (from.quantize != nullptr) {
    options.quantize =
        parse_stored_type(from.quantize, "quantize", "", "blocks such as q4_k, a mix such as q4_k_m, or auto");
  }
  if (!options.budget && (from.output_size != 0 || from.bits_per_weight != 0 || from.text != nullptr))
    refuse("output_size, bits_per_weight and text need quantize \"auto\"");
  if (from.sparse != POISE_DENSE) options.sparse = convert_sparse_layout(from.sparse);
  options.min_sparsity = from.min_sparsity;
  for (const poise_keep& keep : view_items(from.keep, from.keep_count, "keep")) {
    options.keep.push_back({std::string(require_text(keep.pattern, "keep.pattern")),
                            parse_stored_type(&dereference(keep.type, "keep.type"), "keep.type", "f32, f16, bf16, ",
                                              "or blocks such as q4_k")});
  }
  options.only = copy_texts(from.only, from.only_count, "only");
  options.skip = copy_texts(from.skip, from.skip_count, "skip");
  options.vocab = copy_optional_text(from.vocab).value_or("");
  options.merges = copy_optional_text(from.merges).value_or("");
  options.imatrix = copy_optional_text(from.imatrix).value_or("");
  options.delta = copy_optional_text(from.delta).value_or("");
  for (const poise_lora& lora : view_items(from.lora, from.lora_count, "lora"))
    options.lora.push_back({std::string(require_text(lora.path, "lora.path")), lora.scale});
  options.strip_prefix = copy_optional_text(from.strip_prefix).value_or("");
  for (const poise_rename& rename : view_items(from.rename, from.rename_count, "rename")) {
    options.rename.push_back({std::string(require_text(rename.pattern, "rename.pattern")),
                              std::string(require_text(rename.name, "rename.name"))});
  }
  options.add_prefix = copy_optional_text(from.add_prefix).value_or("");
  options.layers = copy_optional_text(from.layers).value_or("");
  if (from.vocab_size != 0) options.vocab_size = from.vocab_size;
  options.drop_rows = from.drop_rows != 0;
  for (const poise_setting& setting : view_items(from.set, from.set_count, "set")) {
    options.set.emplace_back(std::string(require_text(setting.key, "set.key")), require_text(setting.text, "set.text"));
  }
  options.card = convert_card(from.card);
  // A field that is empty, and not NULL, becomes empty.
  const poise_card card = read_options_or(from.card, POISE_CARD_INIT);
  const auto clear = [&](const char* text, const char* key) {
    if (text != nullptr && *text == '\0') options.set.emplace_back(key, "");
  };
  clear(card.model_type, "card.model_type");
  clear(card.base_model, "card.base_model");
  clear(card.author, "card.author");
  clear(card.created_at, "card.created_at");
  clear(card.last_modified, "card.last_modified");
  clear(card.license, "card.license");
  clear(card.uuid, "card.uuid");
  options.read = make_read_options(from.io);
  options.write.overwrite = from.overwrite != 0;
  set_storage_options(from.storage, options.write);
  options.write.progress = convert_progress(from.progress);
  options.verify = from.verify != 0;
  options.strict = from.strict != 0;
  return options;
}

poise_tensor_statistics to_c_statistics(const poise::TensorStatistics& tensor) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  poise_tensor_statistics out{};
  out.size = sizeof(out);
  out.tensor = lend_text(tensor.name);
  out.type = lend_text(tensor.type);
  out.problem = lend_text(tensor.problem);
  out.elements = tensor.elements;
  out.min = tensor.min;
  out.max = tensor.max;
  out.mean = tensor.mean;
  out.deviation = tensor.deviation;
  out.rms = tensor.rms;
  out.zeros = tensor.zeros;
  out.subnormals = tensor.subnormals;
  out.nans = tensor.nans;
  out.infinities = tensor.infinities;
  out.outliers = tensor.outliers;
  out.largest_channel = tensor.largest_channel ? tensor.largest_channel->index : 0;
  out.largest_channel_rms = tensor.largest_channel ? tensor.largest_channel->rms : kNone;
  out.histogram_low = tensor.histogram ? tensor.histogram->low : kNone;
  out.histogram_high = tensor.histogram ? tensor.histogram->high : kNone;
  if (tensor.histogram) std::ranges::copy(tensor.histogram->counts, out.histogram_counts);
  return out;
}

std::string make_details_json(const poise::ConvertReport& report) {
  Value::Array quantized;
  for (const poise::ConvertReport::Quantized& tensor : report.quantized) {
    quantized.emplace_back(Attributes{{"tensor", tensor.tensor},
                                      {"type", poise::to_string(tensor.type)},
                                      {"bytes_in", tensor.bytes_in},
                                      {"bytes_out", tensor.bytes_out},
                                      {"worst_error", tensor.error.worst},
                                      {"rms_error", tensor.error.rms()}});
  }
  return poise::to_json(Attributes{{"outputs", poise::list_outputs(report)},
                                   {"warnings", poise::list_messages(report.warnings)},
                                   {"losses", Value::Array(report.losses.begin(), report.losses.end())},
                                   {"changes", Value::Array(report.changes.begin(), report.changes.end())},
                                   {"casts", poise::list_casts(report)},
                                   {"quantized", std::move(quantized)}});
}

}  // namespace

poise_status poise_verify(const char* path, const poise_verify_options* options,
                          int (*on_finding)(void* user, const poise_finding* finding), void* user,
                          poise_verify_report* report, poise_error* error) {
  return catch_errors(error, [&] {
    const poise_verify_options chosen = read_options_or(options, POISE_VERIFY_OPTIONS_INIT);
    if (report != nullptr) check_size(*report);
    const poise::VerifyReport found =
        poise::verify(require_text(path, "path"), make_read_options(chosen.io), convert_progress(chosen.progress));
    for (const poise::Finding& finding : found.faults) {
      const poise_finding c_value = to_c_finding(finding);
      if (on_finding != nullptr && on_finding(user, &c_value) != 0) throw_cancelled();
    }
    if (report == nullptr) return;
    poise_verify_report out = POISE_VERIFY_REPORT_INIT;
    copy_text(found.format, out.format);
    out.tensors = found.tensors;
    out.bytes = found.bytes;
    out.digests = found.digests;
    out.faults = found.errors();
    out.warnings = found.warnings();
    copy_struct_out(report, "report", out);
  });
}

poise_status poise_hash(const poise_model* model, const poise_hash_options* options,
                        int (*on_part)(void* user, const poise_part_hash* part), void* user, poise_model_hash* hash,
                        poise_error* error) {
  return catch_errors(error, [&] {
    const poise_hash_options chosen = read_options_or(options, POISE_HASH_OPTIONS_INIT);
    if (hash != nullptr) check_size(*hash);
    const poise::ModelHash found = poise::hash(dereference(model, "model").model, convert_progress(chosen.progress));
    for (const poise::PartHash& part : found.parts) {
      const poise_part_hash c_value = {sizeof(poise_part_hash), lend_text(part.tensor), lend_text(part.role),
                                       lend_text(part.sha256)};
      if (on_part != nullptr && on_part(user, &c_value) != 0) throw_cancelled();
    }
    if (hash == nullptr) return;
    poise_model_hash out = POISE_MODEL_HASH_INIT;
    copy_text(found.model, out.sha256);
    copy_text(found.content, out.content);
    copy_struct_out(hash, "hash", out);
  });
}

poise_status poise_compute_statistics(const poise_model* model, const poise_statistics_options* options,
                                      int (*on_tensor)(void* user, const poise_tensor_statistics* tensor), void* user,
                                      poise_error* error) {
  return catch_errors(error, [&] {
    if (on_tensor == nullptr) refuse("on_tensor is NULL");
    const poise_statistics_options chosen = read_options_or(options, POISE_STATISTICS_OPTIONS_INIT);
    const poise::ModelStatistics found = poise::compute_statistics(
        dereference(model, "model").model, {.only = copy_texts(chosen.only, chosen.only_count, "only"),
                                            .skip = copy_texts(chosen.skip, chosen.skip_count, "skip"),
                                            .progress = convert_progress(chosen.progress)});
    for (const poise::TensorStatistics& tensor : found.tensors) {
      const poise_tensor_statistics c_value = to_c_statistics(tensor);
      if (on_tensor(user, &c_value) != 0) throw_cancelled();
    }
  });
}

poise_status poise_write_report(const char* path, const char* page, const poise_report_options* options,
                                uint64_t* bytes, poise_error* error) {
  return catch_errors(error, [&] {
    const poise_report_options chosen = read_options_or(options, POISE_REPORT_OPTIONS_INIT);
    const std::uint64_t written = poise::write_report(require_text(path, "path"), require_text(page, "page"),
                                                      {.against = copy_optional_text(chosen.against).value_or(""),
                                                       .overwrite = chosen.overwrite != 0,
                                                       .read = make_read_options(chosen.io),
                                                       .progress = convert_progress(chosen.progress)});
    if (bytes != nullptr) *bytes = written;
  });
}

poise_status poise_convert(const char* input, const char* output, const poise_convert_options* options,
                           poise_convert_report* report, poise_error* error) {
  return catch_errors(error, [&] {
    if (report != nullptr) check_size(*report);
    const poise::ConvertReport done =
        poise::convert(require_text(input, "input"), require_text(output, "output"), read_convert_options(options));
    if (report == nullptr) return;
    poise_convert_report out = POISE_CONVERT_REPORT_INIT;
    copy_text(done.format, out.format);
    out.tensors = done.tensors;
    out.skipped = done.skipped;
    out.bytes_in = done.bytes_in;
    out.bytes_out = done.bytes_out;
    out.seconds = done.seconds;
    out.details = copy_text_out(make_details_json(done));
    copy_struct_out(report, "report", out);
  });
}

// These calls describe statuses, formats and element types, and free texts and tokens.

using namespace poise::capi;

const char* poise_version(void) { return POISE_VERSION; }

const char* poise_status_name(poise_status status) {
  switch (status) {
    case POISE_OK: return "ok";
    case POISE_INVALID_FILE: return "invalid_file";
    case POISE_UNSUPPORTED: return "unsupported";
    case POISE_NOT_FOUND: return "not_found";
    case POISE_BAD_ARGUMENT: return "bad_argument";
    case POISE_IO: return "io";
    case POISE_CANCELLED: return "cancelled";
    case POISE_OUT_OF_MEMORY: return "out_of_memory";
    case POISE_INTERNAL: return "internal";
  }
  return "unknown";
}

void poise_string_free(poise_string* string) {
  if (string == nullptr) return;
  std::free(string->data);
  *string = {nullptr, 0};
}

void poise_tokens_free(poise_tokens* tokens) {
  if (tokens == nullptr) return;
  std::free(tokens->data);
  *tokens = {nullptr, 0};
}

poise_status poise_format_at(size_t index, poise_format* format, poise_error* error) {
  return catch_errors(error, [&] {
    const auto all = poise::formats();
    check_index("format", index, all.size());
    const poise::FormatInfo& info = all[index];
    copy_struct_out(format, "format",
                    {sizeof(poise_format), lend_text(info.name), lend_text(info.description), lend_text(info.extension),
                     info.readable, info.writable});
  });
}

poise_status poise_dtype_describe(poise_dtype dtype, poise_dtype_info* out, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::DTypeInfo& row = poise::info(convert_dtype(dtype));
    copy_struct_out(out, "info", {sizeof(poise_dtype_info), lend_text(row.name), row.bits});
  });
}
