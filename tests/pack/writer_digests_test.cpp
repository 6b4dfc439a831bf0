#include "pack/writer_digests.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include <poise/source.hpp>

#include "io/sink.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

// printf abc | openssl dgst -sha256; printf '' | openssl dgst -sha256; head -c 1048576 /dev/zero | openssl dgst -sha256
constexpr const char* kAbc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kNothing = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kMebibyteOfZeros = "sha256:30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58";

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write(Sink& sink, std::string_view text) { sink.write(std::as_bytes(std::span(text))); }

// Writes a part without changing its bytes.
std::size_t write_part(WriterDigests& digests, Sink& sink, const std::vector<std::byte>& bytes) {
  if (Hasher* hasher = digests.begin_part(&sink)) hasher->update(bytes);
  sink.write(bytes);
  return digests.end_part();
}

// Is a file in memory whose bytes can be read back. Copies into it become zeros without using memory.
class MemoryFile final : public Sink {
 public:
  explicit MemoryFile(std::chrono::microseconds read_time = {}) : read_time_(read_time) {}

  Sink* readable_sink() override { return this; }
  SourcePtr read_back() override {
    ++asked_;
    return std::make_shared<Bytes>(*this);
  }
  int asked() const { return asked_; }
  int reads() const { return reads_; }

 protected:
  void do_write(std::span<const std::byte> bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void do_copy(const Source&, std::uint64_t, std::uint64_t) override {}

 private:
  class Bytes final : public Source {
   public:
    explicit Bytes(MemoryFile& file) : Source("memory", file.position()), file_(file) {}
    bool mapped() const override { return false; }
    std::span<const std::byte> bytes() const override { return {}; }
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
      ++file_.reads_;
      std::this_thread::sleep_for(file_.read_time_);
      const auto data = std::span(file_.bytes_)
                            .subspan(static_cast<std::size_t>(std::min<std::uint64_t>(offset, file_.bytes_.size())));
      const auto end = std::copy_n(data.begin(), std::min(data.size(), out.size()), out.begin());
      std::fill(end, out.end(), std::byte{0});
    }

   private:
    MemoryFile& file_;
  };

  std::vector<std::byte> bytes_;
  std::chrono::microseconds read_time_;
  int asked_ = 0;
  std::atomic<int> reads_ = 0;
};

TEST(WriterDigests, AreThoseOfTheBytesInTheFileInOrder) {
  MemoryFile file;
  WriterDigests digests(DigestAlgorithm::sha256);
  write(file, "magic");
  EXPECT_EQ(digests.begin_part(&file), nullptr);  // read again
  write(file, "abc");
  EXPECT_EQ(digests.end_part(), 0U);
  write(file, "padding");
  EXPECT_EQ(write_part(digests, file, {}), 1U);
  EXPECT_EQ(write_part(digests, file, std::vector<std::byte>(1 << 20)), 2U);
  EXPECT_EQ(digests.finish(), (std::vector<std::string>{kAbc, kNothing, kMebibyteOfZeros}));
}

TEST(WriterDigests, AreReadFromTheFileThatHasThePart) {
  MemoryFile first, second;
  WriterDigests digests(DigestAlgorithm::sha256);
  write_part(digests, first, bytes_of("abc"));
  write(second, "magic");
  write_part(digests, second, std::vector<std::byte>(1 << 20));
  write_part(digests, first, bytes_of("abc"));
  EXPECT_EQ(digests.finish(), (std::vector<std::string>{kAbc, kMebibyteOfZeros, kAbc}));
}

TEST(WriterDigests, NeedTheWritersBytesWhereTheseCannotBeReadAgain) {
  MemorySink memory;
  MemoryFile file;
  WriterDigests digests(DigestAlgorithm::sha256);
  for (Sink* sink : {static_cast<Sink*>(&memory), static_cast<Sink*>(nullptr)}) {
    Hasher* const hasher = digests.begin_part(sink);
    ASSERT_NE(hasher, nullptr);
    hasher->update(bytes_of("abc"));
    digests.end_part();
  }
  write_part(digests, file, bytes_of("abc"));
  EXPECT_EQ(digests.finish(), (std::vector<std::string>{kAbc, kAbc, kAbc}));
}

TEST(WriterDigests, OthersAreHashedAsTheBytesPass) {
  MemoryFile file;
  WriterDigests digests(DigestAlgorithm::crc32c);
  write_part(digests, file, bytes_of("123456789"));
  EXPECT_EQ(digests.finish(), std::vector<std::string>{
                                  "crc32c:0xE3069283"});  // RFC 3720 names the algorithm, its check value is well known
  EXPECT_EQ(file.asked(), 0);
}

TEST(WriterDigests, NoneMakesEmptyTexts) {
  MemoryFile file;
  WriterDigests digests(DigestAlgorithm::none);
  EXPECT_EQ(digests.begin_part(&file), nullptr);
  write(file, "abc");
  digests.end_part();
  EXPECT_EQ(digests.finish(), std::vector<std::string>{""});
  EXPECT_EQ(file.asked(), 0);
}

TEST(WriterDigests, ManyPartsAreReadWhileOthersAreWritten) {
  const SourcePtr zeros = Source::from_memory({}, "zeros");
  MemoryFile file;
  WriterDigests digests(DigestAlgorithm::sha256);
  const auto write_one = [&] {
    digests.begin_part(&file);
    file.copy(*zeros, 0, 1 << 20);
    return digests.end_part();
  };
  while (write_one() < 2000 && file.asked() == 0) {
  }
  EXPECT_EQ(file.asked(), 1);  // a batch
  write_one();
  const std::vector<std::string> texts = digests.finish();
  EXPECT_EQ(file.asked(), 2);
  EXPECT_EQ(std::ranges::count(texts, kMebibyteOfZeros), static_cast<std::ptrdiff_t>(texts.size()));
}

TEST(WriterDigests, CanBeGivenUp) {
  const SourcePtr zeros = Source::from_memory({}, "zeros");
  MemoryFile file(std::chrono::milliseconds(1));
  {
    WriterDigests digests(DigestAlgorithm::sha256);
    digests.begin_part(&file);
    file.copy(*zeros, 0, std::uint64_t{2} << 30);  // 8192 reads, 8 seconds
    digests.end_part();
    EXPECT_EQ(file.asked(), 1);
  }
  const int reads = file.reads();
  EXPECT_LT(reads, 4096);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(file.reads(), reads) << "read after the writer had gone";
}

}  // namespace
}  // namespace poise
