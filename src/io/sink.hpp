// Sink and Output: where writers put bytes, once and in order.
//
// A Sink is one file being written from front to back. An Output is everything one save produces: the main file and,
// for formats with shards, its siblings; all of it appears on commit() or none of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/source.hpp>

namespace poise {

class ReadableSink;

class Sink {
 public:
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // Appends bytes. Throws io.
  void write(std::span<const std::byte> bytes);
  // Appends zero bytes up to the next multiple of `alignment`: padding, which a file has as a hole where it can.
  void pad_to(std::uint64_t alignment);
  // The same for `count` bytes.
  void pad(std::uint64_t count);
  // Appends bytes [offset, offset + length) of a source, in the kernel where it can. Requires: the range is inside.
  void copy(const Source& source, std::uint64_t offset, std::uint64_t length);

  std::uint64_t position() const { return position_; }
  // Bytes of padding among those written.
  std::uint64_t padding() const { return padding_; }

  // Where the bytes can be read again while the file is being written; null: nowhere. Lives as long as the Output.
  virtual ReadableSink* readable() { return nullptr; }

 protected:
  Sink() = default;
  virtual void do_write(std::span<const std::byte> bytes) = 0;
  // Writes zero bytes.
  virtual void do_pad(std::uint64_t count);
  virtual void do_copy(const Source& source, std::uint64_t offset, std::uint64_t length);

 private:
  std::uint64_t position_ = 0;
  std::uint64_t padding_ = 0;
};

class ReadableSink : public Sink {
 public:
  ReadableSink* readable() final { return this; }
  // The bytes written so far. Throws io.
  virtual SourcePtr written() = 0;
};

class Output {
 public:
  virtual ~Output() = default;
  virtual Sink& main() = 0;
  // The same under another name beside that of the output, where all files of a save are called alike. Requires: a
  // plain file name; main() is not called.
  virtual Sink& main_named(const std::string& name) = 0;
  // Another file of the same save, beside the main one; in a directory that is saved, any file of it. Requires: a plain
  // file name, asked for once.
  virtual Sink& sibling(const std::string& name) = 0;
  // The name of the main file, from which siblings' names are made.
  virtual std::string name() const = 0;
};

// One on the disk.
class SavedOutput : public Output {
 public:
  // Bytes written so far, to all files.
  virtual std::uint64_t bytes() const = 0;
  // How many of them are padding.
  virtual std::uint64_t padding() const = 0;
  // What there is after commit(): the main file first, then its siblings, or the directory alone.
  virtual std::vector<std::filesystem::path> paths() const = 0;
  // What commit() replaces beyond a file of the output's name, as a sentence; empty: nothing.
  virtual std::string replaces() const { return {}; }
  // Makes everything durable and lets it appear.
  virtual void commit() = 0;
};

// Files that appear together on commit(); see AtomicFile.
class FileOutput final : public SavedOutput {
 public:
  // Throws the bad_argument that the constructor would throw. Makes nothing.
  static void require_possible(const std::filesystem::path& path, bool overwrite,
                               const std::vector<std::filesystem::path>& inputs);

  // Throws bad_argument where the output, or later a sibling, is one of the `inputs`.
  FileOutput(std::filesystem::path path, bool overwrite, std::vector<std::filesystem::path> inputs = {});
  ~FileOutput() override;
  Sink& main() override;
  Sink& main_named(const std::string& name) override;
  Sink& sibling(const std::string& name) override;
  std::string name() const override { return path_.filename().string(); }
  std::uint64_t bytes() const override;
  std::uint64_t padding() const override;
  std::vector<std::filesystem::path> paths() const override;
  // The siblings first, the main file last. When one cannot be renamed, those that are new go away again.
  void commit() override;

 private:
  struct Files;
  static void require_other_than(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& path);
  std::filesystem::path other_than_inputs(std::filesystem::path path) const;

  std::filesystem::path path_;
  bool overwrite_;
  std::vector<std::filesystem::path> inputs_;
  std::unique_ptr<Files> files_;
};

// Counts bytes and keeps none of them.
class CountingSink final : public Sink {
 protected:
  void do_write(std::span<const std::byte>) override {}
  void do_pad(std::uint64_t) override {}
};

class MemorySink final : public Sink {
 public:
  std::vector<std::byte> take() { return std::move(bytes_); }

 protected:
  void do_write(std::span<const std::byte> bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

 private:
  std::vector<std::byte> bytes_;
};

// Files in memory, for tests and fuzzing.
class MemoryOutput final : public Output {
 public:
  explicit MemoryOutput(std::string name) : name_(std::move(name)) {}
  Sink& main() override { return main_; }
  Sink& main_named(const std::string& name) override {
    name_ = name;
    return main_;
  }
  Sink& sibling(const std::string& name) override { return siblings_[name]; }
  std::string name() const override { return name_; }
  std::vector<std::byte> take() { return main_.take(); }

 private:
  std::string name_;
  MemorySink main_;
  std::map<std::string, MemorySink> siblings_;
};

}  // namespace poise
