// Makes the large data of a report: a list for each column of the tensors, their heat maps, the comparison with another
// model, and the tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <poise/diff.hpp>
#include <poise/hash.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/value.hpp>

#include "ops/tensor_details.hpp"

namespace poise {

// Chooses the tensors that a page lists, and the size of their maps.
class PageTensors {
 public:
  explicit PageTensors(const Model& model);

  // Returns the tensors that the page lists, in the model's order: all, or the 20,000 with most bytes.
  const std::vector<const Tensor*>& listed() const { return listed_; }
  bool is_listed(const Tensor& tensor) const { return sides_.contains(&tensor); }
  // Returns the side of a tensor's map in cells; 0 if it has no map.
  std::size_t find_side(const Tensor& tensor) const;
  std::size_t side() const { return side_; }
  std::size_t map_count() const { return maps_; }         // the number of maps on the page
  std::size_t matrix_count() const { return matrices_; }  // the number of matrices that could have a map

 private:
  std::vector<const Tensor*> listed_;
  std::unordered_map<const Tensor*, std::size_t> sides_;  // the sides of the maps of listed tensors
  std::size_t side_ = 0;
  std::size_t maps_ = 0;
  std::size_t matrices_ = 0;
};

struct TensorFacts {
  TensorStatistics statistics;
  TensorDetails details;
};

// Collects the columns of the listed tensors as JSON, and the cells of heat maps as bytes.
class TensorColumns {
 public:
  explicit TensorColumns(const std::vector<PartHash>& hashes);

  void add(const Tensor& tensor, const TensorFacts& facts);
  // Adds the list of differences. A row has a tensor's name, the kind of the difference, the storage in both models,
  // and the distances if there are any.
  void add_differences(Value::Array rows) { lists_["differences"] = std::move(rows); }
  // Returns the JSON. Requires: this is the last call that uses the lists.
  std::string release_json();
  std::string release_maps() { return std::move(maps_); }

  // Appends a map's cells, and returns [place, rows, columns] for the script. `unit` is the value whose code is 128.
  Value add_map(const HeatMap& map, double unit);

 private:
  std::map<std::string, Value::Array> lists_;
  std::map<std::string, std::vector<const PartHash*>, std::less<>> hashes_;
  std::map<std::string, std::uint64_t> types_;
  std::string maps_;
};

// Compares all numbers of `model` with those of `original`, from which it was made. Returns the differences of metadata
// and counts of tensors. Adds the differences of tensors and the maps of their errors to `columns`. If a tensor cannot
// be read, returns the title of `original` and the problem.
Value compare_with(const Model& original, const Model& model, const PageTensors& tensors, const Progress& progress,
                   TensorColumns& columns);

// Returns the tokens as JSON, {"texts": [...], "types": "...", "lengths": {"ID": LENGTH}}, deflated to at most `most`
// bytes. `lengths` has the number of characters of those whose texts are cut. Sets `kept` to the number of tokens that
// fit.
std::string pack_vocabulary(const Vocabulary& vocabulary, std::size_t most, std::size_t& kept);

// Returns a number with five significant digits; null if it is not finite.
Value shorten_number(double number);

}  // namespace poise
