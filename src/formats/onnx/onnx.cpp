// Reads an ONNX model, a ModelProto in protocol buffers. The fields read here:
//
//   ModelProto   1 to 6 ir_version to doc_string   7 graph   8 opset_import   14 metadata_props
//                20 training_info   25 functions
//   GraphProto   1 node (repeated)   2 name   5 initializer (repeated)   10 doc_string   11 input   12 output
//                15 sparse_initializer
//
// Source: onnx/onnx.proto of github.com/onnx/onnx (docs/formats/onnx.md).
#include "formats/registry.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "formats/onnx/onnx.hpp"
#include "io/source_range.hpp"

namespace poise::onnx {
namespace {

constexpr std::uint64_t kGraph = 7;          // the field `graph` of ModelProto
constexpr std::size_t kMostWarnings = 1000;  // each two bytes of a file may cause one

// Collects entries in order. Keeps the first entry of each key.
class EntryList {
 public:
  // Returns false if there is already an entry with the key.
  bool add(Attributes::Entry entry) {
    if (!keys_.insert(entry.first).second) return false;
    entries_.push_back(std::move(entry));
    return true;
  }
  bool empty() const { return entries_.empty(); }
  bool contains(const std::string& key) const { return keys_.contains(key); }
  Attributes release_attributes() { return Attributes::from_unique(std::move(entries_)); }

 private:
  std::vector<Attributes::Entry> entries_;
  std::unordered_set<std::string> keys_;
};

class Reader {
 public:
  Reader(const Input& input, const ReadOptions& options)
      : source_(input.source), records_(make_unmapped_source(source_)), files_(input, options) {
    model_.origin = {input.path, "onnx", source_->size(), {input.path}};
  }

  Model read() {
    Message message(*records_, "onnx", 0, source_->size());
    EntryList sets;
    EntryList metadata;
    bool has_graph = false;
    while (message.next()) {
      switch (message.number()) {
        case 1: set_attribute("onnx.ir_version", static_cast<std::int64_t>(message.read_integer("ir_version"))); break;
        case 2: set_attribute("onnx.producer_name", values_.read_text(message, "producer_name")); break;
        case 3: set_attribute("onnx.producer_version", values_.read_text(message, "producer_version")); break;
        case 4: set_attribute("onnx.domain", values_.read_text(message, "domain")); break;
        case 5:
          set_attribute("onnx.model_version", static_cast<std::int64_t>(message.read_integer("model_version")));
          break;
        case 6: set_attribute("onnx.doc_string", values_.read_text(message, "doc_string")); break;
        case kGraph:
          if (has_graph) message.fail("graph", "it appears twice");
          has_graph = true;
          read_graph(message.read_message("graph", "graph"));
          break;
        case 8:
          add_entry(sets, values_.read_operator_set(message.read_message("opset_import", "opset_import")),
                    "opset_import", message.field_offset());
          break;
        case 14:
          add_entry(metadata, values_.read_entry(message.read_message("metadata_props", "metadata_props")),
                    "metadata_props", message.field_offset());
          break;
        case 20: add_warning(message.field_offset(), "training_info is left out"); break;
        case 25: warn_of_function(message.read_message("functions", "functions")); break;
        default: break;
      }
    }
    if (!has_graph) message.fail("graph", "it is missing");
    if (!sets.empty()) set_attribute("onnx.opset_import", sets.release_attributes());
    if (!metadata.empty()) set_attribute("onnx.metadata", metadata.release_attributes());
    EntryList all;
    for (const Attributes& entries : {model_.attributes, texts_.release_attributes()}) {
      for (const Attributes::Entry& entry : entries) {
        if (!all.add(entry)) add_warning(0, fmt::format("the texts of the tensor {} are left out", entry.first));
      }
    }
    model_.attributes = all.release_attributes();
    for (const auto& [name, source] : files_.opened()) {
      model_.origin.files.push_back(model_.origin.path.parent_path() / name);
      model_.origin.size += source->size();
    }
    return std::move(model_);
  }

 private:
  void set_attribute(const char* name, Value value) { model_.attributes.set(name, std::move(value)); }

  void add_entry(EntryList& list, Attributes::Entry entry, std::string_view field, std::uint64_t at) {
    std::string key = shorten(entry.first, 100);
    if (!list.add(std::move(entry))) add_warning(at, fmt::format("{}: a second entry of {} is left out", field, key));
  }

  void add_warning(std::uint64_t at, std::string what) {
    if (model_.warnings.size() > kMostWarnings) return;
    if (model_.warnings.size() == kMostWarnings) what = "more parts of the file are left out";
    model_.warnings.push_back({Severity::warning, std::move(what), source_->name(), at});
  }

  // Warns that a function is left out, if it has tensors.
  void warn_of_function(Message function) {
    std::string name;
    bool has_tensors = false;
    while (function.next()) {
      if (function.number() == 1) name = function.read_text("name");
      if (function.number() != 7) continue;
      const Node node = read_node(function.read_message("node", "node"), *source_);
      has_tensors = has_tensors || !node.tensors.empty() || !node.sparse.empty() || !node.lists.empty();
    }
    if (has_tensors)
      add_warning(function.field_offset(), fmt::format("the function {} is left out with its tensors", name));
  }

  void read_graph(Message graph) {
    Value::Array inputs;
    Value::Array outputs;
    std::uint64_t nodes = 0;
    while (graph.next()) {
      switch (graph.number()) {
        case 1:
          ++nodes;
          add_node(graph.read_message("node", "node"));
          break;
        case 2: set_attribute("onnx.graph", values_.read_text(graph, "name")); break;
        case 5: add_tensor(read_tensor_proto(graph.read_message("initializer", "initializer"))); break;
        case 10: set_attribute("onnx.graph_doc_string", values_.read_text(graph, "doc_string")); break;
        case 11: inputs.push_back(values_.read_value_info(graph.read_message("input", "input"))); break;
        case 12: outputs.push_back(values_.read_value_info(graph.read_message("output", "output"))); break;
        case 15: add_tensor(read_sparse_proto(graph.read_message("sparse_initializer", "sparse_initializer"))); break;
        default: break;
      }
    }
    // Before version 4 of the format, initializers are also listed among the inputs.
    std::erase_if(inputs, [&](const Value& input) {
      const auto* name = input.get_if<Attributes>()->get_if<std::string>("name");
      return name != nullptr && (model_.find(*name) != nullptr || texts_.contains(*name));
    });
    set_attribute("onnx.nodes", nodes);
    set_attribute("onnx.inputs", Value(std::move(inputs)));
    set_attribute("onnx.outputs", Value(std::move(outputs)));
    if (bodies_ > 0)
      model_.warnings.push_back(
          {Severity::warning,
           fmt::format("{} in nodes (bodies of loops and branches) {} left out, with {} tensors",
                       format_count(bodies_, "graph"), bodies_ == 1 ? "is" : "are", bodies_ == 1 ? "its" : "their"),
           source_->name(), first_body_});
  }

  // Adds the tensors of a node if it is a Constant; warns if another node has tensors.
  void add_node(const Message& message) {
    const Node node = read_node(message, *source_);
    if (bodies_ == 0 && !node.graphs.empty()) first_body_ = node.graphs.front();
    bodies_ += node.graphs.size();
    for (const std::uint64_t at : node.lists) add_warning(at, "a list of tensors of a node is left out");
    if (node.is_constant) {
      for (const TensorProto& proto : node.tensors) add_tensor(proto);
      for (const SparseProto& proto : node.sparse) add_tensor(proto);
    } else if (!node.tensors.empty() || !node.sparse.empty()) {
      add_warning(message.field_offset(), "a tensor of a node that is not a constant is left out");
    }
  }

  void add_tensor(const TensorProto& proto) {
    add_place_to_errors(proto, [&] {
      if (proto.type != kText) {
        model_.add(make_tensor(proto, source_, files_));
      } else if (auto texts = read_texts(proto, *source_)) {
        set_texts(proto, *std::move(texts));
      } else {
        add_warning(proto.at,
                    fmt::format("{} is left out: its texts are not UTF-8, or have more than 1 MiB", proto.name));
      }
    });
  }

  void set_texts(const TensorProto& proto, Value texts) {
    if (!texts_.add({proto.name, std::move(texts)})) throw Error(ErrorKind::invalid_file, "it appears twice");
  }

  void add_tensor(const SparseProto& proto) {
    add_place_to_errors(proto.values, [&] { model_.add(make_sparse(proto, source_, files_)); });
  }

  // Runs `body`, and adds the tensor's name and offset to its errors.
  template <typename Body>
  void add_place_to_errors(const TensorProto& proto, const Body& body) const {
    try {
      body();
    } catch (const Error& error) {
      if (error.offset() || !error.path().empty()) throw;
      throw Error(error.kind(), fmt::format("onnx: tensor {}: {}", proto.name, error.message()), source_->name(),
                  proto.at);
    }
  }

  SourcePtr source_;
  SourcePtr records_;
  ExternalFiles files_;
  ValueReader values_;
  Model model_;
  EntryList texts_;  // the attributes made of tensors with texts
  std::size_t bodies_ = 0;
  std::uint64_t first_body_ = 0;
};

}  // namespace

bool is_model(const SourcePtr& source) {
  constexpr std::array<std::uint64_t, 11> kFields = {1, 2, 3, 4, 5, 6, kGraph, 8, 14, 20, 25};
  constexpr std::size_t kMostFields = 4096;
  const SourcePtr records = make_unmapped_source(source);
  bool has_graph = false;
  try {
    Message message(*records, "onnx", 0, source->size());
    for (std::size_t fields = 0; message.next(); ++fields) {
      if (fields == kMostFields || std::ranges::find(kFields, message.number()) == kFields.end()) return false;
      if (message.number() == 1 && message.read_integer("ir_version") > INT32_MAX) return false;
      if (message.number() == kGraph) {
        message.read_place("graph");
        has_graph = true;
      }
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    return false;
  }
  return has_graph;
}

Model read(const Input& input, const ReadOptions& options) { return Reader(input, options).read(); }

}  // namespace poise::onnx

namespace poise {

namespace {

// Returns true for ONNX. All programs write the version first.
bool sniff(const Input& input) {
  const auto bytes = read_first_bytes(input, 1);
  constexpr std::byte kVersionTag{0x08};
  return !bytes.empty() && bytes[0] == kVersionTag && onnx::is_model(input.source);
}

}  // namespace

const Format kOnnx = {
    .info = {"onnx", "an ONNX model", ".onnx"},
    .holds_bf16 = true,
    .sniff = sniff,
    .read = onnx::read,
};

}  // namespace poise
