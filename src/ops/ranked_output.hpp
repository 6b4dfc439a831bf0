// RankedOutput lets several ranks write files together, on a file system that all of them see.
//
// All ranks run the same writer. All have the same position in each file. Each rank writes only its parts at their
// places; rank 0 writes everything else, and makes the files appear when all ranks are done. If a rank dies earlier, no
// output appears. If the ranks are processes of one machine, the files have no names until they appear. Otherwise they
// have hidden names; if rank 0 is killed, the next save by ranks to the same target removes these files.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/communicator.hpp"
#include "io/file_descriptor.hpp"
#include "io/sink.hpp"
#include "pack/digest.hpp"

namespace poise {

class RankedOutput final : public SavedOutput {
 public:
  // `own` is the output of rank 0, whose files are AtomicFiles; null on other ranks. `bytes` is the approximate size of
  // all parts, which the ranks share equally. If `has_names`, the files have hidden names in any case. All ranks call
  // this together.
  RankedOutput(std::unique_ptr<SavedOutput> own, std::uint64_t bytes, Communicator& ranks, bool has_names = false);
  ~RankedOutput() override;

  // All ranks open the same files together. The next three functions throw io on all ranks if one rank does not see the
  // file.
  Sink& main() override;
  Sink& open_main(const std::string& name) override;
  Sink& open_sibling(const std::string& name) override;
  std::string name() const override { return name_; }
  void complete_texts(std::span<std::string> texts) override;
  std::uint64_t bytes() const override;
  std::uint64_t padding() const override;
  // Returns the paths of rank 0. All ranks call this together.
  std::vector<std::filesystem::path> paths() const override;
  // Returns an empty text on ranks other than the first.
  std::string describe_replacements() const override;
  // Waits for all ranks. Throws invalid_file if they would write different files.
  void commit() override;

 private:
  class File;
  Sink& open(const std::function<Sink&()>& open_own);
  // Returns true if this rank writes the next part.
  bool assign_part(std::uint64_t bytes);

  std::unique_ptr<SavedOutput> own_;
  std::uint64_t bytes_;
  Communicator& ranks_;
  bool has_names_;
  std::string name_;
  std::uint64_t dealt_ = 0;
  std::deque<File> files_;
  File* main_ = nullptr;
};

}  // namespace poise
