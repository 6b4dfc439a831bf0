#include "runtime/attention.hpp"

#include <algorithm>
#include <cmath>

namespace poise {

void attend(const KvCache& cache, const CachedHead& head, const float* queries, std::size_t count, float* out, std::vector<float>& scores) {
  const std::size_t positions = head.last - head.first;
  scores.resize(std::max(scores.size(), count * positions));
  const FloatRows all = {queries, head.size, count};
  const auto keys = cache.keys(head);
  const auto values = cache.values(head);
  const float scale = 1.0F / std::sqrt(static_cast<float>(head.size));
  attention_scores(all, keys[0], head.size, scale, scores.data(), positions);
  attention_scores(all, keys[1], head.size, scale, scores.data() + keys[0].count, positions);
  for (std::size_t q = 0; q < count; ++q) softmax(scores.data() + q * positions, positions);
  std::fill_n(out, count * head.size, 0.0F);
  add_weighted_rows({scores.data(), positions, count}, values[0], head.size, out);
  add_weighted_rows({scores.data() + values[0].count, positions, count}, values[1], head.size, out);
}

}  // namespace poise
