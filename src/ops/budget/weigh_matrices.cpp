#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "bytes/checked.hpp"
#include "ops/budget/budget.hpp"

namespace poise {
namespace {

// Replaces numbers between dots by "*": all of them, or those of experts, which follow the word "experts".
std::string replace_numbers(std::string_view name, bool only_experts) {
  std::string result;
  std::string_view before;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view word = name.substr(begin, end - begin);
    const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
    if (begin > 0) result += '.';
    result += is_number && (!only_experts || before == "experts") ? "*" : word;
    before = word;
    begin = end + 1;
  }
  return result;
}

// Adds a matrix to one that stands for several.
void join_matrix(BudgetMatrix& all, const BudgetMatrix& one) {
  std::vector<TypeCandidate> joined;
  for (const TypeCandidate& candidate : all.candidates) {
    const auto same = std::ranges::find(one.candidates, candidate.type, &TypeCandidate::type);
    if (same == one.candidates.end()) continue;
    joined.push_back(candidate);
    joined.back().bytes = saturating_add(candidate.bytes, same->bytes);
    joined.back().error += same->error;
  }
  all.candidates = std::move(joined);
  all.names.push_back(one.names.front());
}

}  // namespace

std::vector<BudgetMatrix> join_experts(std::vector<BudgetMatrix> matrices) {
  std::vector<BudgetMatrix> result;
  std::unordered_map<std::string, std::size_t> places;
  for (BudgetMatrix& matrix : matrices) {
    const auto [place, is_new] = places.emplace(replace_numbers(matrix.names.front(), true), result.size());
    if (is_new) {
      result.push_back(std::move(matrix));
    } else {
      join_matrix(result[place->second], matrix);
    }
  }
  for (BudgetMatrix& matrix : result) {
    for (TypeCandidate& candidate : matrix.candidates) candidate.error /= static_cast<double>(matrix.names.size());
    if (matrix.candidates.empty()) matrix.candidates.push_back({std::nullopt, UINT64_MAX, 0});
  }
  return result;
}

void set_weights(std::vector<BudgetMatrix>& matrices) {
  constexpr double kPartsOfLayer = 2;
  std::unordered_map<std::string, std::size_t> counts;
  for (BudgetMatrix& matrix : matrices) {
    matrix.role = replace_numbers(matrix.names.front(), false);
    counts[matrix.role] += matrix.names.size();
  }
  for (BudgetMatrix& matrix : matrices) {
    if (matrix.role == matrix.names.front()) continue;
    matrix.weight =
        static_cast<double>(matrix.names.size()) / (kPartsOfLayer * static_cast<double>(counts[matrix.role]));
  }
}

std::optional<std::size_t> choose_probe(const BudgetMatrix& matrix) {
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t i = 0; i < matrix.candidates.size(); ++i) {
    const double error = matrix.candidates[i].error;
    if (!matrix.candidates[i].type || !(error > 0)) continue;
    const double distance = std::abs(std::log(error / kProbedError));
    if (best && distance >= least) continue;
    best = i;
    least = distance;
  }
  return best;
}

void set_weights(std::vector<BudgetMatrix>& matrices, std::span<const double> divergences) {
  double least = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const std::optional<std::size_t> probe = choose_probe(matrices[i]);
    matrices[i].weight = probe ? divergences[i] / matrices[i].candidates[*probe].error : 0;
    if (matrices[i].weight > 0 && (least == 0 || matrices[i].weight < least)) least = matrices[i].weight;
  }
  for (BudgetMatrix& matrix : matrices) {
    if (!(matrix.weight > 0)) matrix.weight = least > 0 ? least : kLeastWeight;
  }
}

}  // namespace poise
