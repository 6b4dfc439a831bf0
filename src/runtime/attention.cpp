#include "runtime/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "bytes/checked.hpp"
#include "kernels/activation.hpp"

namespace poise {
namespace {

IndexRange cut_to_block(const IndexRange& seen, std::size_t begin) {
  return {std::max(seen.first, begin), std::min(seen.last, begin + kBlockPositions)};
}

// Computes one task in float32. `queries` and `out` begin at the task's first token and head.
void attend_with_vectors(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                         float* out) {
  thread_local std::vector<float> scores;
  const KvCache& cache = *task.tokens.front().cache;
  const CacheKernels& kernels = cache.type().kernels();
  const std::size_t begin = find_visible_positions(task.tokens.front(), heads.window).first;
  const std::size_t end = task.tokens.back().position + 1;
  // Each token and head has a row of scores: those of the positions that the token sees, and then the sink's.
  const std::size_t stride = end - begin + 1;
  scores.resize(std::max(scores.size(), task.tokens.size() * task.count * stride));
  const std::size_t apart = heads.count * heads.size;  // numbers between two tokens
  const auto visit_runs = [&](Cached what, const auto& use) {
    for (std::size_t block = begin / kBlockPositions * kBlockPositions; block < end; block += kBlockPositions) {
      for (std::size_t t = 0; t < task.tokens.size(); ++t) {
        const IndexRange seen = find_visible_positions(task.tokens[t], heads.window);
        const IndexRange here = cut_to_block(seen, block);
        if (here.first >= here.last) continue;
        use(t, cache.find_run(what, task.layer, task.kv_head, here.first, here.last),
            scores.data() + t * task.count * stride + here.first - seen.first);
      }
    }
  };
  visit_runs(Cached::keys, [&](std::size_t t, const CachedRun& keys, float* to) {
    kernels.compute_scores({queries + t * apart, heads.size, task.count}, keys, heads.size, scale, to, stride);
  });
  for (std::size_t t = 0; t < task.tokens.size(); ++t) {
    const IndexRange seen = find_visible_positions(task.tokens[t], heads.window);
    for (std::size_t q = 0; q < task.count; ++q)
      compute_attention_weights(scores.data() + (t * task.count + q) * stride, seen.size(), heads, task.head + q);
    std::fill_n(out + t * apart, task.count * heads.size, 0.0F);
  }
  visit_runs(Cached::values, [&](std::size_t t, const CachedRun& values, const float* weights) {
    kernels.add_values({weights, stride, task.count}, values, heads.size, out + t * apart);
  });
}

enum class Method : std::uint8_t { vectors, tiles, panels };

// Tiles and panels convert keys and values once for each task. Panels save time from this number of rows on; a row is a
// token with a query head.
constexpr std::size_t kLeastRowsOfPanels = 32;

// Chooses how `count` tokens of a sequence attend.
Method choose_method(std::size_t count, const AttentionHeads& heads, CacheType type, Precision precision) {
  if (precision != Precision::fast) return Method::vectors;
  if (count > KernelInput::kFewTokensWithTiles && get_tile_unit() != TileUnit::none && can_use_tiles(heads.size))
    return Method::tiles;
  const bool has_rows = count > KernelInput::kFewTokens && count * (heads.count / heads.kv_count) >= kLeastRowsOfPanels;
  return has_rows && type != CacheType::f32 && can_use_panels(heads.size) ? Method::panels : Method::vectors;
}

// States the most tokens, and the most query heads, of a task.
struct Division {
  std::size_t tokens;
  std::size_t heads;

  // Aims at four tasks for each thread: fewer could leave threads idle, and more would read the same keys again.
  Division(std::size_t count, const AttentionHeads& all, Method method) : tokens(1), heads(all.count / all.kv_count) {
    // A task of vectors keeps the scores of all its rows, so their number is limited. Other methods convert keys and
    // values again for each task, so more rows share them.
    const std::size_t most_rows = method == Method::vectors ? 16 : 512;
    const std::size_t least_rows = method == Method::panels ? kLeastRowsOfPanels : 1;
    const auto threads = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
    constexpr std::size_t kFewHeads = 4;  // fewer would read the same keys too often
    if (count * all.kv_count < threads) heads = std::min(heads, kFewHeads);
    tokens = std::clamp<std::size_t>(count * all.kv_count / (4 * threads), ceil_div(least_rows, heads),
                                     std::max<std::size_t>(1, most_rows / heads));
    tokens = ceil_div(count, ceil_div(count, tokens));  // tasks of equal size
  }
};

}  // namespace

IndexRange find_visible_positions(const AttentionToken& token, std::size_t window) {
  const std::size_t last = token.position + 1;
  return {window == 0 || last <= window ? 0 : last - window, last};
}

void compute_attention_weights(float* scores, std::size_t count, const AttentionHeads& heads, std::size_t head) {
  if (heads.cap != 0.0F) apply_soft_cap(scores, count, heads.cap);
  if (heads.sinks != nullptr) scores[count] = heads.sinks[head];
  apply_softmax(scores, count + (heads.sinks == nullptr ? 0 : 1));
}

TaskRows::TaskRows(const AttentionTask& task, const AttentionHeads& heads)
    : task_(task),
      heads_(heads),
      begin_(find_visible_positions(task.tokens.front(), heads.window).first / kBlockPositions * kBlockPositions),
      end_(task.tokens.back().position + 1),
      positions_(ceil_div(end_ - begin_, kBlockPositions) * kBlockPositions) {}

IndexRange TaskRows::find_seen(std::size_t row) const {
  const IndexRange seen = find_visible_positions(task_.tokens[find_token(row)], heads_.window);
  return {seen.first - begin_, seen.last - begin_};
}

IndexRange TaskRows::find_seen_blocks(const IndexRange& rows) const {
  return {find_seen(rows.first).first / kBlockPositions * kBlockPositions,
          ceil_div(find_seen(rows.last - 1).last, kBlockPositions) * kBlockPositions};
}

CachedRun TaskRows::find_run(Cached what, const IndexRange& positions) const {
  return cache().find_run(what, task_.layer, task_.kv_head, begin_ + positions.first,
                          std::min(end_, begin_ + positions.last));
}

bool TaskRows::decode_block(Cached what, std::size_t position, float* out) const {
  const CacheKernels& kernels = cache().type().kernels();
  const CachedRun run = find_run(what, {position, position + kBlockPositions});
  const bool is_keys = what == Cached::keys;
  const bool are_finite = (is_keys ? kernels.decode_keys : kernels.decode_values)(run.block, heads_.size, out);
  if (run.count == kBlockPositions) return are_finite;
  if (is_keys) {
    for (std::size_t i = 0; i < heads_.size; ++i)
      std::fill_n(out + i * kBlockPositions + run.count, kBlockPositions - run.count, 0.0F);
  } else {
    std::fill_n(out + run.count * heads_.size, (kBlockPositions - run.count) * heads_.size, 0.0F);
  }
  return are_finite ||
         std::all_of(out, out + kBlockPositions * heads_.size, [](float number) { return std::isfinite(number); });
}

float TaskRows::compute_weights(std::size_t row, const IndexRange& blocks, float scale, float* scores) const {
  const IndexRange seen = find_seen(row);
  float* const first = scores + (seen.first - blocks.first);
  float* const last = scores + (seen.last - blocks.first);
  if (heads_.cap != 0.0F) {
    for (float* score = first; score < last; ++score) *score *= scale;
    apply_soft_cap(first, seen.size(), heads_.cap);
    scale = 1;
  }
  std::fill(scores, first, -std::numeric_limits<float>::infinity());
  std::fill(last, scores + blocks.size(), -std::numeric_limits<float>::infinity());
  const float* const sink = heads_.sinks == nullptr ? nullptr : heads_.sinks + task_.head + row % task_.count;
  return static_cast<float>(1.0 / compute_exponentials(scores, blocks.size(), scale, sink));
}

void attend(std::span<const AttentionToken> tokens, std::size_t layer, const AttentionHeads& heads, Precision precision,
            const float* queries, float* out) {
  if (heads.count == 0) return;
  const std::size_t sharing = heads.count / heads.kv_count;
  const float scale = heads.scale != 0.0F ? heads.scale : 1.0F / std::sqrt(static_cast<float>(heads.size));
  struct Task : AttentionTask {
    Method method;
  };
  std::vector<Task> tasks;
  for (std::size_t begin = 0; begin < tokens.size();) {
    std::size_t end = begin + 1;
    while (end < tokens.size() && tokens[end].cache == tokens[begin].cache) ++end;
    const Method method = choose_method(end - begin, heads, tokens[begin].cache->type().type, precision);
    // With vectors, the tasks of all sequences together keep the threads busy. Tiles and panels divide each sequence as
    // if it were alone.
    const Division division(method == Method::vectors ? tokens.size() : end - begin, heads, method);
    for (std::size_t first = begin; first < end; first += division.tokens) {
      for (std::size_t kv_head = 0; kv_head < heads.kv_count; ++kv_head) {
        for (std::size_t head = 0; head < sharing; head += division.heads)
          tasks.push_back({{tokens.subspan(first, std::min(division.tokens, end - first)), layer, kv_head,
                            kv_head * sharing + head, std::min(division.heads, sharing - head)},
                           method});
      }
    }
    begin = end;
  }
  tbb::parallel_for(
      tbb::blocked_range<std::size_t>(0, tasks.size()), [&](const tbb::blocked_range<std::size_t>& range) {
        for (std::size_t i = range.begin(); i < range.end(); ++i) {
          const Task& task = tasks[i];
          const auto token = static_cast<std::size_t>(task.tokens.data() - tokens.data());
          const std::size_t at = (token * heads.count + task.head) * heads.size;
          const bool is_done =
              task.method == Method::tiles    ? attend_on_tiles(task, heads, scale, queries + at, out + at)
              : task.method == Method::panels ? attend_on_panels(task, heads, scale, queries + at, out + at)
                                              : false;
          if (!is_done) attend_with_vectors(task, heads, scale, queries + at, out + at);
        }
      });
}

}  // namespace poise
