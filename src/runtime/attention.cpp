#include "runtime/attention.hpp"

#include <algorithm>
#include <cmath>

namespace poise {

void attend(const KvCache& cache, std::size_t layer, std::size_t first, std::size_t last, std::size_t offset, std::size_t size, const float* query, float* out,
            std::vector<float>& scores) {
  scores.resize(std::max(scores.size(), last - first));
  const KvCache::Runs keys = cache.keys(layer, first, last, offset);
  const KvCache::Runs values = cache.values(layer, first, last, offset);
  const float scale = 1.0F / std::sqrt(static_cast<float>(size));
  attention_scores(query, keys[0], size, scale, scores.data());
  attention_scores(query, keys[1], size, scale, scores.data() + keys[0].count);
  softmax(scores.data(), last - first);
  std::fill_n(out, size, 0.0F);
  add_weighted_rows(scores.data(), values[0], size, out);
  add_weighted_rows(scores.data() + values[0].count, values[1], size, out);
}

}  // namespace poise
