// A const Model is safe to read from many threads: each of eight does everything with the same one. What this test is
// for shows under ThreadSanitizer (`make tsan`, where tbb_for_tsan.cpp lets it see what oneTBB does); without it, it
// checks that all threads see the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include <poise/convert.hpp>
#include <poise/diff.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>
#include <poise/verify.hpp>
#include <poise/weights.hpp>

#include "support/directories.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 8;

// Makes one file for each format, and one with compressed parts.
class Concurrency : public testing::Test {
 protected:
  Concurrency() : directory_(fs::temp_directory_path() / fmt::format("poise-concurrency-{}", ::getpid())) {
    fs::create_directories(directory_);
    const fs::path example = source_directory() / "examples" / "nano-mistral";
    ConvertOptions compressed;
    compressed.write.zstd_level = 3;
    files_ = {example, make(example, "m.alt", {}), make(example, "m.zt", {}),
              make(example, "compressed.zt", compressed)};
    compressed.format = "zt1";
    files_.push_back(make(example, "compressed1.zt", compressed));
    ConvertOptions quantized;
    quantized.quantize = StoredType{.dtype = DType::qint8};
    files_.push_back(make(example, "q.alt", quantized));
    ConvertOptions grouped;
    grouped.quantize = StoredType{.dtype = DType::i32, .groups = {.bits = 4, .size = 32}};
    grouped.format = "zt1";
    files_.push_back(make(example, "groups.zt", grouped));
  }
  ~Concurrency() override { fs::remove_all(directory_); }

  fs::path make(const fs::path& from, const std::string& name, const ConvertOptions& options) {
    convert(from, directory_ / name, options);
    return directory_ / name;
  }

  // Expects that all threads get the same answer.
  static void together(const std::function<std::string()>& answer) {
    std::vector<std::string> answers(kThreads);
    std::vector<std::thread> threads;
    for (std::string& mine : answers) {
      threads.emplace_back([&answer, &mine] {
        try {
          mine = answer();
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(answers, testing::Each(answers.front()));
  }

  const fs::path& directory() const { return directory_; }

  std::vector<fs::path> files_;

 private:
  fs::path directory_;
};

std::size_t sum_of(std::span<const std::byte> bytes) {
  std::size_t sum = 0;
  for (const std::byte byte : bytes) sum = sum * 31 + std::to_integer<std::size_t>(byte);
  return sum;
}

TEST_F(Concurrency, OneModelReadFromAllSides) {
  for (const fs::path& file : files_) {
    for (const IoMode io : {IoMode::map, IoMode::read}) {
      const Model model = open(file, ReadOptions{.io = io});
      together([&model] {
        std::string answer;
        for (const Tensor& tensor : model.tensors()) {
          EXPECT_EQ(model.find(tensor.name), &tensor);
          for (const Part& part : tensor.parts) {
            const auto all = part.blob->map();
            answer += fmt::format("{}:{} ", tensor.name,
                                  sum_of(all ? *all : std::span<const std::byte>(read_all(*part.blob))));
          }
        }
        return answer + (model.vocabulary ? std::string(model.vocabulary->text(500)) : "");
      });
    }
  }
}

TEST_F(Concurrency, OneModelHashedAndTokenizedAtOnce) {
  for (const fs::path& file : files_) {
    const Model model = open(file);
    together([&model] {
      std::string answer = hash(model).model;
      const auto tokenizer = Tokenizer(*model.vocabulary);
      for (const auto token : tokenizer.encode("Once upon a time, \u65e5\u672c")) answer += fmt::format(" {}", token);
      return answer;
    });
  }
}

TEST_F(Concurrency, OneFileOpenedAndVerifiedAtOnce) {
  for (const fs::path& file : files_) {
    together([&file] {
      const VerifyReport report = verify(file);
      return fmt::format("{} {} {} {}", report.tensors, report.bytes, report.digests, report.faults.size());
    });
  }
}

TEST_F(Concurrency, OneModelRunBySeveralSessions) {
  for (const fs::path& file : files_) {
    const Model model = open(file);
    together([&model] {
      Session session(model, {.threads = 4, .context = 64});
      session.feed(session.prompt("Once upon a time, there was"));
      std::string answer;
      for (const TokenId token : session.generate({.max_tokens = 4, .sampling = {.temperature = 0}}).tokens)
        answer += fmt::format(" {}", token);
      return answer;
    });
  }
}

TEST_F(Concurrency, OneSetOfWeightsUsedBySeveralSessions) {
  files_.push_back(source_directory() / "examples" / "nano-tiny-llama" / "weights.tllm");
  for (const fs::path& file : files_) {
    const auto weights = load_weights(open(file));
    together([&weights] {
      Session session(weights, {.threads = 4, .context = 64});
      session.feed(std::vector<TokenId>{1, 7, 5, 11, 3});
      std::string answer;
      for (const TokenId token : session.generate({.max_tokens = 4, .sampling = {.temperature = 0}}).tokens)
        answer += fmt::format(" {}", token);
      return answer;
    });
  }
}

// Const functions of one session: what a draft has computed ahead stays.
TEST_F(Concurrency, OneSessionSavedForkedAndReadAtOnce) {
  const auto weights = load_weights(open(files_.front()));
  Session session(weights, {.threads = 2, .context = 64, .draft = DraftOptions{.model = weights}});
  session.feed(session.prompt("Once upon a time, there was"));
  Sampler greedy;
  session.feed(std::vector<TokenId>{session.sample(greedy)});
  std::atomic<int> outputs = 0;
  const Session& constant = session;
  together([&] {
    const fs::path output = directory() / fmt::format("session-{}.zt", outputs++);
    constant.save(output);
    Session loaded(weights, {.context = 64});
    loaded.load(output);
    Session fork = constant.fork();
    std::string answer = fmt::format("{} {} {}", constant.position(), constant.logits()[7], hash(open(output)).model);
    for (Session* const other : {&loaded, &fork}) {
      for (const TokenId token : other->generate({.max_tokens = 4}).tokens) answer += fmt::format(" {}", token);
    }
    return answer;
  });
  session.generate({.max_tokens = 4});
  EXPECT_GT(session.draft_counts().right, 0U);
}

// Converting makes parts, digests and scales in separate tasks, which all read one model.
TEST_F(Concurrency, OneFileConvertedAndComparedAtOnce) {
  ConvertOptions groups;
  groups.quantize = StoredType{.dtype = DType::i32, .groups = {.bits = 8, .size = 32}};
  ConvertOptions codes;
  codes.quantize = StoredType{.dtype = DType::qint4, .scale = ScaleRule::range};
  codes.write.zstd_level = 1;
  ConvertOptions sparse;
  sparse.sparse = Layout::sparse_csr;
  sparse.min_sparsity = 0;
  std::atomic<int> outputs = 0;
  for (ConvertOptions options : {ConvertOptions{}, groups, codes, sparse}) {
    options.format = "zt1";
    const Model input = open(files_.front());
    together([&] {
      const fs::path output = directory() / fmt::format("output-{}.zt", outputs++);
      convert(files_.front(), output, options);
      const Model converted = open(output);
      const DiffReport report = diff(input, converted);
      return fmt::format("{} {} {}", hash(converted).model, report.tensors.size(), report.equal_tensors);
    });
  }
}

}  // namespace
}  // namespace poise
