#include <cmath>

#include <oneapi/tbb/task_arena.h>

#include "capi/face.hpp"
#include "codec/affine.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "formats/format.hpp"
#include "io/sink.hpp"
#include "model/card.hpp"
#include "model/fault_lists.hpp"

using namespace poise::capi;

struct poise_writer {
  poise_writer(const poise::Format& format_, const std::filesystem::path& path, poise::WriteOptions options_)
      : format(format_),
        options(std::move(options_)),
        output(poise::make_saved_output(format, path, options.overwrite)) {
    if (!options.progress) return;
    options.progress = [this, report = std::move(options.progress)](const poise::ProgressEvent& info) {
      const std::lock_guard lock(callbacks);
      return report(info);
    };
  }

  const poise::Format& format;
  poise::WriteOptions options;
  std::unique_ptr<poise::SavedOutput> output;
  // Formats may ask for several tensors at once, and report progress meanwhile. The caller's callbacks run one at a
  // time.
  std::mutex callbacks;
  poise::Model model;
  bool ended = false;
  std::optional<std::string> losses;  // of the file that was written
};

namespace {

using poise::Attributes;
using poise::Error;
using poise::ErrorKind;

// Reads bytes that the caller's callback makes on demand.
class FilledBlob final : public poise::Blob {
 public:
  FilledBlob(const poise_tensor_plan& plan, std::uint64_t size, std::mutex& mutex)
      : name_(plan.name), fill_(plan.fill), user_(plan.user), size_(size), mutex_(mutex) {}

  std::uint64_t size() const override { return size_; }
  // Returns false, so that writers read the blob in order where they can, which is easiest for callbacks.
  bool seekable() const override { return false; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    // Isolated: a thread that waits in the callback must not take other work, which may wait for the lock.
    if (oneapi::tbb::this_task_arena::isolate([&] { return fill_(user_, offset, out.data(), out.size()); }) == 0)
      return;
    throw Error(ErrorKind::cancelled, fmt::format("tensor {}: the callback that fills it asked to stop", name_));
  }

 private:
  std::string name_;
  int (*fill_)(void*, std::uint64_t, void*, std::size_t);
  void* user_;
  std::uint64_t size_;
  std::mutex& mutex_;
};

poise_writer& require_unfinished(poise_writer* writer) {
  if (dereference(writer, "writer").ended) refuse("the writer is finished; it can only be freed");
  return *writer;
}

const poise::Format& choose_format(const std::filesystem::path& path, const char* name) {
  if (name != nullptr) {
    const poise::Format& format = poise::find_format_by_name(name);
    if (format.prepare == nullptr) refuse(fmt::format("{} can be read, not written", format.info.name));
    return format;
  }
  return poise::find_output_format(path);
}

// Parses a JSON object from the caller, and calls use() with it. Throws bad_argument for faults of the JSON.
template <typename Use>
void visit_json_object(const char* json, const char* parameter, Use&& use) {
  const std::string_view text = require_text(json, parameter);
  try {
    const poise::Value value = poise::parse_json(text, parameter);
    const auto* map = value.get_if<Attributes>();
    if (map == nullptr) refuse(fmt::format("{} is not a JSON object", parameter));
    use(*map);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_file) throw;
    throw Error(ErrorKind::bad_argument, error.message(), error.path(), error.offset());
  }
}

void check_affine(const poise_affine& affine, std::string_view name) {
  const bool sensible = std::isfinite(affine.delta) && affine.delta >= 0 && std::isfinite(affine.min) &&
                        std::isfinite(affine.max) && affine.min <= affine.max;
  if (!sensible) {
    refuse(fmt::format("tensor {}: delta {}, min {}, max {}: expected finite numbers, delta not negative, min <= max",
                       name, affine.delta, affine.min, affine.max));
  }
}

poise::Tensor make_planned_tensor(const poise_tensor_plan& plan, std::mutex& mutex) {
  const std::string name(require_text(plan.name, "plan->name"));
  const poise::DType dtype = convert_dtype(plan.dtype);
  if (plan.fill == nullptr) refuse("plan->fill is NULL");
  const auto dims = view_items(plan.dims, plan.rank, "plan->dims");
  const poise::Shape shape(dims.begin(), dims.end());
  const auto elements = poise::element_count(shape);
  auto bytes = elements ? poise::packed_bytes(dtype, *elements) : std::nullopt;
  if (!bytes) refuse(fmt::format("tensor {}: the elements of shape {} overflow", name, poise::to_string(shape)));
  std::shared_ptr<const poise::AffineSource> affine;
  if (poise::info(dtype).kind == poise::DTypeKind::quantized) {
    check_affine(plan.affine, name);
    const poise::Affine scale{plan.affine.delta, plan.affine.min, plan.affine.max, plan.affine.packed != 0};
    if (scale.packed && dtype == poise::DType::qint8)
      refuse(fmt::format("tensor {}: only codes of qint4 can be packed", name));
    affine = poise::make_affine(scale);
    bytes = poise::get_code_format(dtype, scale).count_bytes(*elements);
  }
  poise::Tensor tensor = poise::make_dense(name, shape, dtype, std::make_shared<FilledBlob>(plan, *bytes, mutex));
  if (affine) {
    tensor.layout = std::move(affine);
  }
  return tensor;
}

void add_unique_tensor(poise::Model& model, poise::Tensor tensor) {
  if (model.find(tensor.name) != nullptr) refuse(fmt::format("the tensor name \"{}\" appears twice", tensor.name));
  model.add(std::move(tensor));
}

poise::Vocabulary& require_vocabulary(poise_writer& writer) {
  if (!writer.model.vocabulary) refuse("there is no vocabulary yet: poise_writer_set_vocabulary begins one");
  return *writer.model.vocabulary;
}

void check_ids(const poise::Vocabulary& vocabulary) {
  for (const std::int32_t id : {vocabulary.bos_id, vocabulary.eos_id, vocabulary.pad_id, vocabulary.unk_id}) {
    if (id >= -1 && id < static_cast<std::int64_t>(vocabulary.size())) continue;
    refuse(fmt::format("a special token has the id {}, but the vocabulary has {} tokens", id, vocabulary.size()));
  }
}

// Checks the planned model, and prepares the file. Requires: the writer outlives the result.
poise::PreparedFile prepare_plan(const poise_writer& writer) {
  if (writer.model.vocabulary) check_ids(*writer.model.vocabulary);
  return poise::prepare_file(writer.model, writer.format, writer.options);
}

std::string make_losses_json(const poise::PreparedFile& prepared) {
  return poise::to_json(poise::Value::Array(prepared.losses.begin(), prepared.losses.end()));
}

}  // namespace

poise_status poise_writer_create(const char* path, const char* format, const poise_writer_options* options,
                                 poise_writer** writer, poise_error* error) {
  return catch_errors(error, [&] {
    const poise_writer_options chosen = read_options_or(options, POISE_WRITER_OPTIONS_INIT);
    poise_writer*& out = dereference(writer, "writer");
    const std::filesystem::path target = require_text(path, "path");
    poise::WriteOptions write;
    write.overwrite = chosen.overwrite != 0;
    set_storage_options(chosen.storage, write);
    write.progress = convert_progress(chosen.progress);
    out = new poise_writer(choose_format(target, format), target, std::move(write));
  });
}

poise_status poise_writer_set_metadata(poise_writer* writer, const poise_model* from, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Model& to = require_unfinished(writer).model;
    const poise::Model& model = dereference(from, "from").model;
    to.card = model.card;
    to.config = model.config;
    to.config_json = model.config_json;
    to.vocabulary = model.vocabulary;
    to.attributes = model.attributes;
  });
}

poise_status poise_writer_set_card(poise_writer* writer, const poise_card* card, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Model& model = require_unfinished(writer).model;
    const poise_card from = read_struct(dereference(card, "card"), POISE_CARD_INIT);
    poise::Card checked = poise::normalize_card(convert_card(&from));
    if (from.model_type != nullptr && checked.model_type != model.card.model_type) {
      try {
        poise::set_model_type(model, checked.model_type, {});
      } catch (const poise::Error& problem) {  // the configuration is the caller's, so no file is invalid
        if (problem.kind() != poise::ErrorKind::invalid_file) throw;
        throw poise::Error(poise::ErrorKind::bad_argument, problem.message());
      }
    }
    poise::Card& to = model.card;
    const auto replace = [](std::string& field, const char* given, std::string& text) {
      if (given != nullptr) field = std::move(text);
    };
    replace(to.model_type, from.model_type, checked.model_type);
    replace(to.base_model, from.base_model, checked.base_model);
    replace(to.author, from.author, checked.author);
    replace(to.created_at, from.created_at, checked.created_at);
    replace(to.last_modified, from.last_modified, checked.last_modified);
    replace(to.license, from.license, checked.license);
    replace(to.uuid, from.uuid, checked.uuid);
  });
}

poise_status poise_writer_set_config(poise_writer* writer, const char* json, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Model& to = require_unfinished(writer).model;
    visit_json_object(json, "config", [&](const Attributes& map) {
      poise::Model made;
      made.card.model_type = to.card.model_type;
      poise::parse_config(made, map, {});
      if (made.config) poise::throw_faults(poise::check_config(*made.config), {});
      if (!made.config && made.card.model_type.empty()) refuse("config: model_type and hidden_size are missing");
      to.config = made.config;
      to.config_json = std::move(made.config_json);
      to.card.model_type = std::move(made.card.model_type);
    });
  });
}

poise_status poise_writer_set_attributes(poise_writer* writer, const char* json, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Model& to = require_unfinished(writer).model;
    visit_json_object(json, "attributes", [&](const Attributes& map) {
      for (const auto& [key, value] : map) to.attributes.set(key, value);
    });
  });
}

poise_status poise_writer_set_vocabulary(poise_writer* writer, const poise_vocabulary* vocabulary, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Model& to = require_unfinished(writer).model;
    const poise_vocabulary from = read_struct(dereference(vocabulary, "vocabulary"), POISE_VOCABULARY_INIT);
    if (from.kind < POISE_SENTENCEPIECE_BPE || from.kind > POISE_BYTE_PAIR)
      refuse(fmt::format("vocabulary->kind is {}, expected POISE_SENTENCEPIECE_BPE to POISE_BYTE_PAIR",
                         static_cast<int>(from.kind)));
    poise::Vocabulary made;
    made.kind = static_cast<poise::VocabularyKind>(from.kind);
    made.bos_id = from.bos_id;
    made.eos_id = from.eos_id;
    made.pad_id = from.pad_id;
    made.unk_id = from.unk_id;
    made.max_length = from.max_length;
    made.add_dummy_prefix = from.add_dummy_prefix != 0;
    made.remove_extra_whitespaces = from.remove_extra_whitespaces != 0;
    made.normalizer = view_text(from.normalizer, "vocabulary->normalizer");
    to.vocabulary = std::move(made);
  });
}

poise_status poise_writer_add_token(poise_writer* writer, const poise_token* token, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Vocabulary& to = require_vocabulary(require_unfinished(writer));
    const poise_token from = read_struct(dereference(token, "token"), POISE_TOKEN_INIT);
    if (from.type < POISE_TOKEN_NORMAL || from.type > POISE_TOKEN_USER_DEFINED)
      refuse(fmt::format("token->type is {}, expected one of poise_token_type", static_cast<int>(from.type)));
    to.add(view_text(from.text, "token->text"), from.score, static_cast<poise::TokenType>(from.type));
  });
}

poise_status poise_writer_add_merge(poise_writer* writer, const poise_merge* merge, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Vocabulary& to = require_vocabulary(require_unfinished(writer));
    const poise_merge& from = dereference(merge, "merge");
    to.merges.emplace_back(view_text(from.left, "merge->left"), view_text(from.right, "merge->right"));
  });
}

poise_status poise_writer_add_tensor(poise_writer* writer, const poise_tensor_plan* plan, poise_error* error) {
  return catch_errors(error, [&] {
    poise_writer& to = require_unfinished(writer);
    add_unique_tensor(
        to.model, make_planned_tensor(read_struct(dereference(plan, "plan"), POISE_TENSOR_PLAN_INIT), to.callbacks));
  });
}

poise_status poise_writer_copy_tensor(poise_writer* writer, const poise_tensor* tensor, poise_error* error) {
  return catch_errors(error, [&] {
    poise::Model& to = require_unfinished(writer).model;
    add_unique_tensor(to, require_tensor(tensor));
  });
}

poise_status poise_writer_finish(poise_writer* writer, poise_error* error) {
  return catch_errors(error, [&] {
    poise_writer& to = require_unfinished(writer);
    to.ended = true;
    const poise::PreparedFile prepared = prepare_plan(to);
    std::string losses = make_losses_json(prepared);  // before the commit, after which nothing may fail
    prepared.write(*to.output, to.options.progress);
    to.output->commit();
    to.losses = std::move(losses);
  });
}

poise_status poise_writer_losses(const poise_writer* writer, poise_string* losses, poise_error* error) {
  return catch_errors(error, [&] {
    const poise_writer& from = dereference(writer, "writer");
    poise_string& out = dereference(losses, "losses");
    if (from.ended && !from.losses) refuse("the writer has failed, and wrote no file; it can only be freed");
    out = copy_text_out(from.losses ? *from.losses : make_losses_json(prepare_plan(from)));
  });
}

void poise_writer_free(poise_writer* writer) { delete writer; }
