#include "strided.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include "io/read_fully.hpp"

namespace poise::python {
namespace {

constexpr std::uint64_t kPiece = 4 << 20;   // bytes; a thread reads one or more such pieces at once
constexpr std::uint64_t kWindow = 1 << 20;  // bytes read at once to pick short runs from them
constexpr std::uint64_t kLongRun = 4096;    // bytes; runs of this length and longer ones are read separately

using Stopped = std::function<bool()>;

bool should_stop(const Stopped& stopped) { return stopped && stopped(); }

// Reads bytes [offset, offset + size). Uses several threads for more than kPiece bytes of a blob that can seek.
void read_run(const Blob& blob, std::uint64_t offset, std::byte* out, std::uint64_t size, const Stopped& stopped) {
  if (size == 0) return;
  if (!blob.seekable() && offset == 0 && size == blob.size())
    return read_fully(*blob.stream(), {out, static_cast<std::size_t>(size)});
  if (!blob.seekable() || size <= kPiece) return blob.read(offset, {out, static_cast<std::size_t>(size)});
  tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, (size + kPiece - 1) / kPiece, 1), [&](const auto& pieces) {
    if (should_stop(stopped)) return;
    const std::uint64_t begin = pieces.begin() * kPiece;
    const std::uint64_t end = std::min(size, pieces.end() * kPiece);
    blob.read(offset + begin, {out + begin, static_cast<std::size_t>(end - begin)});
  });
}

// Describes runs at equal distances: `count` runs of `run` bytes, `step` bytes apart, from `offset` on.
struct StridedRuns {
  std::uint64_t offset = 0;
  std::uint64_t run = 0;
  std::uint64_t step = 0;
  std::uint64_t count = 0;
};

void read_strided_runs(const Blob& blob, const StridedRuns& runs, std::vector<std::byte>& window, std::byte* out,
                       const Stopped& stopped) {
  if (runs.run >= kLongRun || runs.step > kWindow) {
    for (std::uint64_t i = 0; i < runs.count; ++i)
      read_run(blob, runs.offset + i * runs.step, out + i * runs.run, runs.run, stopped);
    return;
  }
  const std::uint64_t at_once = std::max<std::uint64_t>(kWindow / runs.step, 1);
  for (std::uint64_t begin = 0; begin < runs.count && !should_stop(stopped); begin += at_once) {
    const std::uint64_t count = std::min(at_once, runs.count - begin);
    window.resize(static_cast<std::size_t>((count - 1) * runs.step + runs.run));
    blob.read(runs.offset + begin * runs.step, window);
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(out + (begin + i) * runs.run, window.data() + i * runs.step, static_cast<std::size_t>(runs.run));
  }
}

}  // namespace

Strided Strided::make_whole(const Shape& shape) {
  Strided result;
  result.shape.assign(shape.begin(), shape.end());
  result.strides.resize(shape.size());
  std::uint64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    result.strides[i] = stride;
    stride *= std::max<std::uint64_t>(shape[i], 1);
  }
  return result;
}

std::uint64_t Strided::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

bool Strided::is_contiguous() const { return extent() == count(); }

std::uint64_t Strided::extent() const {
  if (count() == 0) return 0;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  return last + 1;
}

void read_strided(const Blob& blob, std::uint64_t width, const Strided& elements, std::byte* out,
                  const Stopped& stopped) {
  const std::uint64_t count = elements.count();
  if (count == 0) return;
  if (elements.is_contiguous()) return read_run(blob, elements.first * width, out, count * width, stopped);
  if (!blob.map() && !blob.seekable()) {  // each read would decode the blob from its start
    std::vector<std::byte> bytes(static_cast<std::size_t>(elements.extent() * width));
    read_run(blob, elements.first * width, bytes.data(), bytes.size(), stopped);
    Strided inside = elements;
    inside.first = 0;
    return read_strided(*make_memory_blob(std::move(bytes), "slice"), width, inside, out, stopped);
  }
  std::size_t inner = elements.shape.size();  // dimensions from this one on are contiguous
  std::uint64_t run = 1;
  while (inner > 0 && (elements.shape[inner - 1] == 1 || elements.strides[inner - 1] == run))
    run *= elements.shape[--inner];
  // The runs follow each other along this dimension, and the loop below covers the dimensions before it. inner > 0,
  // since not all elements are contiguous.
  const std::size_t outer = inner - 1;
  StridedRuns runs{
      .offset = 0, .run = run * width, .step = elements.strides[outer] * width, .count = elements.shape[outer]};
  std::vector<std::uint64_t> index(outer, 0);
  std::vector<std::byte> window;
  for (std::uint64_t done = 0; done < count * width && !should_stop(stopped); done += runs.run * runs.count) {
    runs.offset = elements.first;
    for (std::size_t i = 0; i < outer; ++i) runs.offset += index[i] * elements.strides[i];
    runs.offset *= width;
    read_strided_runs(blob, runs, window, out + done, stopped);
    for (std::size_t i = outer; i-- > 0;) {
      if (++index[i] < elements.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace poise::python
