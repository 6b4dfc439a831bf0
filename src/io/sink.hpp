// Writers write each byte once, in order, to the Sinks of an Output.
//
// A Sink is one file, written from front to back. An Output is everything that one save produces: the main file and,
// for formats with shards, its siblings. SavedOutput::commit() makes all of it appear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/source.hpp>

namespace poise {

class Sink {
 public:
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // Appends bytes. Throws io.
  void write(std::span<const std::byte> bytes);
  // Appends zero bytes up to the next multiple of `alignment`. They count as padding, and a file may have a hole there.
  void pad_to(std::uint64_t alignment);
  // Appends `count` zero bytes, which also count as padding.
  void pad(std::uint64_t count);
  // Appends bytes [offset, offset + length) of a source. The operating system copies them where possible. Requires: the
  // range is inside the source.
  void copy(const Source& source, std::uint64_t offset, std::uint64_t length);

  // Several processes may write one file: each writes some parts of tensors at their places. Begins a part, and returns
  // true if this process writes it; otherwise the caller skips it.
  virtual bool begin_part(std::uint64_t /*bytes*/) { return true; }
  virtual void end_part() {}
  // Skips bytes that another process writes.
  void skip(std::uint64_t count);

  std::uint64_t position() const { return position_; }
  // Returns how many of the written bytes are padding.
  std::uint64_t padding() const { return padding_; }

  // Returns the sink whose file can be read while it is written; null if there is none. It lives as long as the Output.
  virtual Sink* readable_sink() { return nullptr; }
  // Returns the bytes that have been written. Throws io. Requires: readable_sink() returned this.
  virtual SourcePtr read_back() { return nullptr; }

 protected:
  Sink() = default;
  virtual void do_write(std::span<const std::byte> bytes) = 0;
  virtual void do_pad(std::uint64_t count);
  virtual void do_copy(const Source& source, std::uint64_t offset, std::uint64_t length);
  // Sinks whose begin_part() may return false override this.
  virtual void do_skip(std::uint64_t /*count*/) {}

 private:
  std::uint64_t position_ = 0;
  std::uint64_t padding_ = 0;
};

class Output {
 public:
  virtual ~Output() = default;
  virtual Sink& main() = 0;
  // Opens the main file under another name in the same directory, for formats that name all files themselves. Requires:
  // a plain file name; main() has not been called.
  virtual Sink& open_main(const std::string& name) = 0;
  // Opens another file of the same save, next to the main one. In a directory, opens each file. Requires: a plain file
  // name, or in a directory also "folder/file", that was not opened before.
  virtual Sink& open_sibling(const std::string& name) = 0;
  // Returns the name of the main file, or of the directory. Writers derive the names of siblings from it.
  virtual std::string name() const = 0;
  // Each process has texts, such as digests, only for the parts that it wrote. Fills in each empty text from the
  // process that has it. All processes call this together.
  virtual void complete_texts(std::span<std::string> /*texts*/) {}
};

// Saves to the disk, or to a stream.
class SavedOutput : public Output {
 public:
  // Returns how many bytes have been written to all files.
  virtual std::uint64_t bytes() const = 0;
  // Returns how many of the bytes in all files are padding.
  virtual std::uint64_t padding() const = 0;
  // Returns the paths that commit() makes appear: the main file, then its siblings; or only the directory.
  virtual std::vector<std::filesystem::path> paths() const = 0;
  // Returns a sentence that names the directory that commit() replaces and the files in it; empty if there is none.
  virtual std::string describe_replacements() const { return {}; }
  // Waits until all files are on the disk, then makes them appear.
  virtual void commit() = 0;
};

// Saves files that appear together on commit(); see AtomicFile.
class FileOutput final : public SavedOutput {
 public:
  // Throws the errors that the constructor would throw. Creates nothing.
  static void check_replaceable(const std::filesystem::path& path, bool overwrite,
                                const std::vector<std::filesystem::path>& inputs);

  // Throws bad_argument when `path` is one of the `inputs`.
  static void require_not_input(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& path);

  // Throws bad_argument when the output is one of the `inputs`, and the errors of AtomicFile. open_main() and
  // open_sibling() check their files in the same way.
  FileOutput(std::filesystem::path path, bool overwrite, std::vector<std::filesystem::path> inputs = {});
  ~FileOutput() override;
  Sink& main() override;
  Sink& open_main(const std::string& name) override;
  Sink& open_sibling(const std::string& name) override;
  std::string name() const override { return path_.filename().string(); }
  std::uint64_t bytes() const override;
  std::uint64_t padding() const override;
  std::vector<std::filesystem::path> paths() const override;
  // Names the siblings first, the main file last. If one cannot be named, removes those before it and puts the files
  // that they replaced back.
  void commit() override;

 private:
  struct Files;
  std::filesystem::path check_not_input(std::filesystem::path path) const;

  std::filesystem::path path_;
  bool overwrite_;
  std::vector<std::filesystem::path> inputs_;
  std::unique_ptr<Files> files_;
};

// Counts bytes and discards them.
class CountingSink final : public Sink {
 protected:
  void do_write(std::span<const std::byte>) override {}
  void do_pad(std::uint64_t) override {}
};

}  // namespace poise
