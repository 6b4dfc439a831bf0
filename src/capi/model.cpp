#include <poise/remote.hpp>

#include "capi/face.hpp"

using namespace poise::capi;

namespace {

using poise::TokenType;
using poise::VocabularyKind;
static_assert(static_cast<int>(TokenType::normal) == POISE_TOKEN_NORMAL &&
              static_cast<int>(TokenType::byte) == POISE_TOKEN_BYTE &&
              static_cast<int>(TokenType::control) == POISE_TOKEN_CONTROL &&
              static_cast<int>(TokenType::unknown) == POISE_TOKEN_UNKNOWN &&
              static_cast<int>(TokenType::unused) == POISE_TOKEN_UNUSED &&
              static_cast<int>(TokenType::bos) == POISE_TOKEN_BOS &&
              static_cast<int>(TokenType::eos) == POISE_TOKEN_EOS &&
              static_cast<int>(TokenType::pad) == POISE_TOKEN_PAD &&
              static_cast<int>(TokenType::user_defined) == POISE_TOKEN_USER_DEFINED);
static_assert(static_cast<int>(VocabularyKind::sentencepiece_bpe) == POISE_SENTENCEPIECE_BPE &&
              static_cast<int>(VocabularyKind::sentencepiece_unigram) == POISE_SENTENCEPIECE_UNIGRAM &&
              static_cast<int>(VocabularyKind::byte_pair) == POISE_BYTE_PAIR &&
              static_cast<int>(VocabularyKind::pipeline) == POISE_PIPELINE);

// Reads the caller's bytes, which it borrows.
class BorrowedSource final : public poise::Source {
 public:
  BorrowedSource(std::span<const std::byte> bytes, std::string name)
      : Source(std::move(name), bytes.size()), bytes_(bytes) {}

  bool mapped() const override { return true; }
  std::span<const std::byte> bytes() const override { return bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset) {
      throw poise::Error(poise::ErrorKind::internal,
                         fmt::format("read of {} bytes outside a source of {}", out.size(), size()), name(), offset);
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::span<const std::byte> bytes_;
};

// Opens a model with the caller's options, and returns its handle.
template <typename Open>
poise_model* make_model(const poise_open_options* given, Open&& open) {
  const poise_open_options options = read_options_or(given, POISE_OPEN_OPTIONS_INIT);
  const poise::ReadOptions read = make_read_options(options.io);
  auto vocabulary = read_vocabulary_files(options.vocab, options.merges);
  poise::Model model = open(read);
  if (vocabulary) model.vocabulary = std::move(vocabulary);
  return new poise_model(std::move(model));
}

}  // namespace

poise_model::poise_model(poise::Model from)
    : model(std::move(from)),
      card(poise::card_to_attributes(model.card)),
      config(poise::whole_config(model)),
      tensors_(std::make_unique<poise_tensor[]>(model.size())) {
  indices_.reserve(model.size());
  for (const poise::Tensor& tensor : model.tensors()) {
    const std::size_t index = indices_.size();
    tensors_[index].model = this;
    tensors_[index].index = index;
    indices_.emplace(tensor.name, index);
  }
}

const poise_tensor& poise_model::tensor(std::size_t index) const {
  check_index("tensor", index, model.size());
  return tensors_[index];
}

const poise_tensor& poise_model::tensor(std::string_view name) const {
  if (const auto found = indices_.find(name); found != indices_.end()) return tensors_[found->second];
  const std::vector<const poise::Tensor*> in_file = model.find_in_file(name);
  if (in_file.empty()) refuse_missing(fmt::format("there is no tensor \"{}\"", name));
  if (in_file.size() > 1)
    refuse_missing(fmt::format("\"{}\" names {} tensors, such as {}", name, in_file.size(), in_file.front()->name));
  return tensors_[indices_.at(in_file.front()->name)];
}

const poise::Vocabulary& poise_model::vocabulary() const {
  if (!model.vocabulary) refuse_missing("the model has no vocabulary");
  return *model.vocabulary;
}

poise_status poise_open(const char* path, const poise_open_options* options, poise_model** model, poise_error* error) {
  return catch_errors(error, [&] {
    poise_model*& out = dereference(model, "model");
    const std::string_view name = require_text(path, "path");
    out = make_model(options, [&](const poise::ReadOptions& read) { return poise::open(name, read); });
  });
}

poise_status poise_open_memory(const void* data, size_t size, const char* name, const poise_open_options* options,
                               poise_model** model, poise_error* error) {
  return catch_errors(error, [&] {
    poise_model*& out = dereference(model, "model");
    const auto bytes = view_items(static_cast<const std::byte*>(data), size, "data");
    const auto source = std::make_shared<BorrowedSource>(bytes, std::string(require_text(name, "name")));
    out = make_model(options, [&](const poise::ReadOptions& read) { return poise::open(source, read); });
  });
}

poise_status poise_open_url(const char* url, const poise_open_options* options, poise_model** model,
                            poise_error* error) {
  return catch_errors(error, [&] {
    poise_model*& out = dereference(model, "model");
    const std::string name(require_text(url, "url"));
    out = make_model(options, [&](const poise::ReadOptions& read) { return poise::open(poise::open_url(name), read); });
  });
}

void poise_model_free(poise_model* model) { delete model; }

poise_status poise_model_describe(const poise_model* model, poise_model_info* info, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Model& opened = dereference(model, "model").model;
    copy_struct_out(info, "info",
                    {sizeof(poise_model_info), lend_text(opened.origin.path.native()), lend_text(opened.origin.format),
                     opened.origin.size, opened.size(), opened.warnings.size(), opened.config.has_value(),
                     opened.vocabulary.has_value()});
  });
}

poise_status poise_model_warning(const poise_model* model, size_t index, poise_finding* warning, poise_error* error) {
  return catch_errors(error, [&] {
    const auto& warnings = dereference(model, "model").model.warnings;
    check_index("warning", index, warnings.size());
    copy_struct_out(warning, "warning", to_c_finding(warnings[index]));
  });
}

poise_status poise_model_card(const poise_model* model, const poise_attributes** card, poise_error* error) {
  return catch_errors(error, [&] { dereference(card, "card") = lend_attributes(dereference(model, "model").card); });
}

poise_status poise_model_config(const poise_model* model, const poise_attributes** config, poise_error* error) {
  return catch_errors(error,
                      [&] { dereference(config, "config") = lend_attributes(dereference(model, "model").config); });
}

poise_status poise_model_attributes(const poise_model* model, const poise_attributes** attributes, poise_error* error) {
  return catch_errors(error, [&] {
    dereference(attributes, "attributes") = lend_attributes(dereference(model, "model").model.attributes);
  });
}

poise_status poise_model_vocabulary(const poise_model* model, poise_vocabulary* vocabulary, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Vocabulary& tokens = dereference(model, "model").vocabulary();
    poise_vocabulary out = POISE_VOCABULARY_INIT;
    out.kind = static_cast<poise_vocabulary_kind>(tokens.kind);
    out.max_length = tokens.max_length;
    out.bos_id = tokens.bos_id;
    out.eos_id = tokens.eos_id;
    out.pad_id = tokens.pad_id;
    out.unk_id = tokens.unk_id;
    out.add_dummy_prefix = tokens.add_dummy_prefix;
    out.remove_extra_whitespaces = tokens.remove_extra_whitespaces;
    out.tokens = tokens.size();
    out.merges = tokens.merges.size();
    out.normalizer = lend_text(tokens.normalizer);
    copy_struct_out(vocabulary, "vocabulary", out);
  });
}

poise_status poise_vocabulary_token(const poise_model* model, size_t id, poise_token* token, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Vocabulary& vocabulary = dereference(model, "model").vocabulary();
    check_index("token", id, vocabulary.size());
    copy_struct_out(token, "token",
                    {sizeof(poise_token), lend_text(vocabulary.text(id)), vocabulary.score(id),
                     static_cast<poise_token_type>(vocabulary.type(id))});
  });
}

poise_status poise_vocabulary_merge(const poise_model* model, size_t rank, poise_merge* merge, poise_error* error) {
  return catch_errors(error, [&] {
    const auto& merges = dereference(model, "model").vocabulary().merges;
    check_index("merge", rank, merges.size());
    dereference(merge, "merge") = {lend_text(merges[rank].first), lend_text(merges[rank].second)};
  });
}
