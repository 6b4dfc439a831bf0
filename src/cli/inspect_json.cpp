#include "cli/commands.hpp"

#include "cli/text.hpp"
#include "formats/adapter.hpp"
#include "ops/delta/delta_parts.hpp"
#include "views/dense.hpp"

namespace poise::cli {
namespace {

// Returns a tensor's attributes. For an affine tensor, adds the scale, range and packing of its layout.
Attributes describe_attributes(const Tensor& tensor) {
  Attributes map = tensor.attributes;
  if (tensor.layout.affine() != nullptr) {
    const Affine affine = tensor.layout.affine()->get();
    map.set("delta", static_cast<double>(affine.delta));
    map.set("min", static_cast<double>(affine.min));
    map.set("max", static_cast<double>(affine.max));
    map.set("packed", affine.packed);
  }
  return map;
}

std::string_view describe_change(StoredAs::Change change) {
  switch (change) {
    case StoredAs::Change::rows_interleaved: return "rows_interleaved";
    case StoredAs::Change::one_added: return "one_added";
    case StoredAs::Change::transposed: return "transposed";
    case StoredAs::Change::codes: return "codes";
  }
  return {};
}

Attributes describe_stored_as(const StoredAs& stored) {
  Attributes map = {{"change", describe_change(stored.change)}};
  if (stored.head_rows != 0) map.set("heads", stored.blob->size() / (stored.row_bytes * stored.head_rows));
  return map;
}

// Prints the JSON in pieces. A Value with all tensors would need many times the memory of the Model, and more time.
class InspectionJson {
 public:
  void print(const Model& model, const std::string& path, const std::optional<std::vector<MetadataKey>>& keys) {
    out_->begin_object();
    out_->write_member("path", path);
    out_->write_member("format", model.origin.format);
    out_->write_member("size", model.origin.size);
    out_->write_member("card", card_to_attributes(model.card));
    out_->write_member("config", whole_config(model));
    out_->write_member("vocabulary", model.vocabulary ? Value(describe_vocabulary(*model.vocabulary)) : Value());
    if (const auto adapter = parse_adapter(model, nullptr)) out_->write_member("adapter", summarize_adapter(*adapter));
    if (const Attributes delta = summarize_delta(model); !delta.empty()) out_->write_member("delta", delta);
    out_->write_member("attributes", model.attributes);
    out_.write_list("warnings", model.warnings,
                    [this](const Finding& warning) { out_->write_value(describe_with_offset(warning)); });
    if (keys) out_.write_list("keys", *keys, [this](const MetadataKey& key) { write(key); });
    Totals totals;
    out_.write_list("tensors", model.tensors(), [&](const Tensor& tensor) {
      totals.add(tensor);
      write(tensor);
    });
    out_->write_key("totals");
    out_->begin_object();
    out_->write_member("tensors", totals.tensors);
    out_->write_member("elements", make_number_or_null(totals.elements));
    out_->write_member("bytes", make_number_or_null(totals.bytes));
    out_->end_object();
    out_->end_object();
    out_.finish();
  }

 private:
  void write(const MetadataKey& key) {
    out_->begin_object();
    out_->write_member("key", key.key);
    out_->write_member("type", key.type);
    out_->write_member("value", key.value);
    out_->end_object();
  }

  void write(const Tensor& tensor) {
    out_->begin_object();
    out_->write_member("name", tensor.name);
    if (tensor.file_name) out_->write_member("file_name", *tensor.file_name);
    out_.write_list("shape", tensor.shape, [this](std::uint64_t dimension) { out_->write_value(dimension); });
    out_->write_member("layout", tensor.layout.name());
    out_->write_member("attributes", describe_attributes(tensor));
    out_->write_member("type", describe_stored_type(tensor));
    out_->write_member("bytes", make_number_or_null(count_bytes(tensor)));
    out_->write_member("elements", tensor.elements());
    out_.write_list("parts", tensor.parts, [this](const Part& part) { write(part); });
    out_->end_object();
  }

  void write(const Part& part) {
    const auto at = part.blob->stored();
    out_->begin_object();
    out_->write_member("role", std::string_view(part.role));
    out_->write_member("dtype", part.shown_type());
    out_->write_member("file", at ? Value(at->source->name()) : Value());
    out_->write_member("offset", at ? Value(at->offset) : Value());
    out_->write_member("length", at ? at->length : part.blob->size());
    out_->write_member("encoding", at ? std::string_view(at->encoding) : "raw");
    out_->write_member("digest", part.digest ? Value(part.digest->text) : Value());
    if (const StoredAs* const stored = part.blob->stored_as())
      out_->write_member("stored_as", describe_stored_as(*stored));
    out_->end_object();
  }

  // A file may hold null, too, so numbers that are not finite are texts.
  JsonOutput out_{JsonWriter::NotFinite::quoted};
};

}  // namespace

Attributes describe_vocabulary(const Vocabulary& vocabulary) {
  return {{"size", vocabulary.size()},   {"bos_id", vocabulary.bos_id}, {"eos_id", vocabulary.eos_id},
          {"pad_id", vocabulary.pad_id}, {"unk_id", vocabulary.unk_id}, {"max_length", vocabulary.max_length}};
}

void print_inspection_json(const Model& model, const std::string& path,
                           const std::optional<std::vector<MetadataKey>>& keys) {
  InspectionJson().print(model, path, keys);
}

}  // namespace poise::cli
