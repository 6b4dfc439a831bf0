#include <poise/divergence.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <poise/error.hpp>
#include <poise/weights.hpp>

#include "api/texts.hpp"
#include "io/source_range.hpp"
#include "runtime/forward_pass.hpp"
#include "runtime/text_divergence.hpp"
#include "runtime/weights.hpp"
#include "tokenizer/gguf/vocabulary.hpp"

namespace poise {
namespace {

static_assert(kMeasuredTokens <= TextDivergence::kMostTokens);

std::string cut_text(std::string_view text) {
  std::size_t size = std::min(text.size(), kMeasuredBytes);
  constexpr unsigned char kContinuation = 0x80;
  constexpr unsigned char kMask = 0xC0;
  while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & kMask) == kContinuation) --size;
  return std::string(text.substr(0, size));
}

// Returns a blob whose bytes a pass can borrow. Without a copy in memory, each pass would read or compute them.
BlobPtr keep_in_memory(const BlobPtr& blob, const std::string& name) {
  const StoredAs* const stored = blob->stored_as();
  if (blob->map() || (stored != nullptr && stored->blob->map())) return blob;
  return make_memory_blob(read_all(*blob), name);
}

// Returns the first kMeasuredTokens tokens of the texts, special tokens included. A text that is longer than the
// context becomes several; one of a single token is left out. Throws bad_argument if no text is left.
TextDivergence::Texts encode_texts(const Weights& weights, std::string_view content) {
  TextDivergence::Texts texts;
  std::size_t room = kMeasuredTokens;
  for (const std::string& text : split_texts(content)) {
    std::vector<TokenId> tokens = encode_with_end(weights, text);
    tokens.resize(std::min(tokens.size(), room));
    room -= tokens.size();
    for (std::size_t begin = 0; begin < tokens.size(); begin += weights.max_context()) {
      const auto part = std::span(tokens).subspan(begin, std::min(tokens.size() - begin, weights.max_context()));
      if (part.size() >= 2) texts.emplace_back(part.begin(), part.end());
    }
    if (room == 0) break;
  }
  if (texts.empty()) {
    throw Error(ErrorKind::bad_argument,
                "the text that weighs the matrices has no token to predict: it needs two tokens or more");
  }
  return texts;
}

// Measures how much a model's predictions for a text change when some of its tensors are replaced.
class ModelOnText {
 public:
  ModelOnText(const Model& model, std::string_view text) : header_(model.header()) {
    base_ = load_base(model);
    texts_ = encode_texts(*base_, text);
    // Passes need no tokenizer, and making one for each pass would take time.
    header_.vocabulary.reset();
    std::vector<Attributes::Entry> others;
    std::ranges::copy_if(header_.attributes, std::back_inserter(others),
                         [](const Attributes::Entry& entry) { return !is_gguf_tokenizer_key(entry.first); });
    header_.attributes = Attributes::from_unique(std::move(others));
    tensors_.assign(model.tensors().begin(), model.tensors().end());
  }

  std::size_t count_predicted_tokens() const {
    std::size_t count = 0;
    for (const auto& text : texts_) count += text.size() - 1;
    return count;
  }

  double measure(const std::vector<Tensor>& changed) {
    if (!divergence_) {
      divergence_.emplace(std::exchange(base_, nullptr), texts_);
      keep_weights_in_memory();
    }
    return divergence_->compute(load_changed(changed));
  }

 private:
  static std::shared_ptr<const Weights> load_base(const Model& model) {
    try {
      auto weights = load_weights(model);
      require_output_matrix(*weights);
      (void)weights->tokenizer();  // throws if there is none
      return weights;
    } catch (const Error& error) {
      throw Error(error.kind(), "a text cannot weigh the matrices: " + error.message(),
                  error.path().empty() ? model.origin.path.string() : error.path());
    }
  }

  // Copies to memory the weights that each pass would otherwise read or compute again.
  void keep_weights_in_memory() {
    for (Tensor& tensor : tensors_) {
      for (Part& part : tensor.parts) part.blob = keep_in_memory(part.blob, tensor.name);
    }
  }

  std::shared_ptr<const Weights> load_changed(const std::vector<Tensor>& changed) const {
    std::unordered_map<std::string_view, const Tensor*> replaced;
    for (const Tensor& tensor : changed) replaced.emplace(tensor.name, &tensor);
    Model model(header_);
    for (const Tensor& tensor : tensors_) {
      const auto found = replaced.find(tensor.name);
      model.add(found == replaced.end() ? tensor : *found->second);
    }
    return load_weights(model);
  }

  ModelHeader header_;
  std::vector<Tensor> tensors_;
  std::shared_ptr<const Weights> base_;  // null once measure() has computed its predictions
  TextDivergence::Texts texts_;
  std::optional<TextDivergence> divergence_;  // std::nullopt before the first measure()
};

}  // namespace

std::vector<std::string> split_texts(std::string_view content) {
  std::vector<std::string> texts;
  bool goes_on = false;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      goes_on = false;
    } else if (goes_on) {
      (texts.back() += '\n') += line;
    } else {
      texts.emplace_back(line);
      goes_on = true;
    }
  }
  return texts;
}

MakeDivergenceMeasure measure_on_text(std::string_view text) {
  return [text = cut_text(text)](const Model& model) {
    const auto run = std::make_shared<ModelOnText>(model, text);
    return DivergenceMeasure{.measure = [run](const std::vector<Tensor>& changed) { return run->measure(changed); },
                             .tokens = run->count_predicted_tokens()};
  };
}

MakeDivergenceMeasure measure_on_text_file(const std::filesystem::path& file) {
  const auto source = Source::open(file, IoMode::read);
  return measure_on_text(read_text(*source, std::min<std::uint64_t>(source->size(), kMeasuredBytes + 1)));
}

}  // namespace poise
