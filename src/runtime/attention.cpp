#include "runtime/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include "kernels/activation.hpp"

namespace poise {
namespace {

// How scores become weights; `sinks` belong to the queries.
struct Scoring {
  float scale;
  float cap;
  const float* sinks;
};

// Queries and out [count, head.size], for query heads that share a head of keys and values.
void attend_to(const KvCache& cache, const CachedHead& head, const Scoring& how, const float* queries,
               std::size_t count, float* out) {
  thread_local std::vector<float> scores;
  const std::size_t positions = head.last - head.first;
  const std::size_t stride = positions + (how.sinks == nullptr ? 0 : 1);
  scores.resize(std::max(scores.size(), count * stride));
  const FloatRows all = {queries, head.size, count};
  const auto keys = cache.keys(head);
  const auto values = cache.values(head);
  attention_scores(all, keys[0], head.size, how.scale, scores.data(), stride);
  attention_scores(all, keys[1], head.size, how.scale, scores.data() + keys[0].count, stride);
  for (std::size_t q = 0; q < count; ++q) {
    float* const row = scores.data() + q * stride;
    if (how.cap != 0.0F) soft_cap(row, positions, how.cap);
    if (how.sinks != nullptr) row[positions] = how.sinks[q];
    softmax(row, stride);
  }
  std::fill_n(out, count * head.size, 0.0F);
  add_weighted_rows({scores.data(), stride, count}, values[0], head.size, out);
  add_weighted_rows({scores.data() + values[0].count, stride, count}, values[1], head.size, out);
}

}  // namespace

void attend(std::span<const AttentionToken> tokens, std::size_t layer, const AttentionHeads& heads,
            const float* queries, float* out) {
  // A task has at most as many heads as the kernels take at once, so that a single token makes enough tasks.
  const std::size_t sharing = heads.count / heads.kv_count;
  const std::size_t tasks_of_kv_head = (sharing + kQueriesTogether - 1) / kQueriesTogether;
  const std::size_t tasks = heads.kv_count * tasks_of_kv_head;  // of a token
  const float scale = heads.scale != 0.0F ? heads.scale : 1.0F / std::sqrt(static_cast<float>(heads.size));
  const auto run = [&](std::size_t t, std::size_t task) {
    const std::size_t last = tokens[t].position + 1;
    const std::size_t first = heads.window == 0 || last <= heads.window ? 0 : last - heads.window;
    const std::size_t kv_head = task / tasks_of_kv_head;
    const std::size_t begin = task % tasks_of_kv_head * kQueriesTogether;  // of those that share
    const std::size_t head = kv_head * sharing + begin;
    const std::size_t at = (t * heads.count + head) * heads.size;
    const Scoring how = {scale, heads.cap, heads.sinks == nullptr ? nullptr : heads.sinks + head};
    attend_to(*tokens[t].cache, {layer, first, last, kv_head * heads.size, heads.size}, how, queries + at,
              std::min(kQueriesTogether, sharing - begin), out + at);
  };
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, tokens.size() * tasks),
                    [&](const tbb::blocked_range<std::size_t>& range) {
                      for (std::size_t i = range.begin(); i < range.end(); ++i) run(i / tasks, i % tasks);
                    });
}

}  // namespace poise
