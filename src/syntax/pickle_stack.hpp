// The stack of a pickle's machine with its marks, and its memo: objects that later steps fetch by a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syntax/pickle.hpp"
#include "syntax/pickle_program.hpp"

namespace poise::pickle {

// Throws what Program throws when a step uses an object that does not exist.
class Stack {
 public:
  // Requires: the program outlives this.
  explicit Stack(Program& program) : program_(program) {}

  void push(Id id);
  Id top() const;
  Id pop();
  // Removes the top object, or the last mark if no object is above it.
  void drop();
  std::vector<Id> pop_many(std::size_t count);

  void push_mark();
  // Removes and returns the objects above the last mark, and removes the mark.
  std::vector<Id> pop_marked(std::string_view what);
  void drop_marked(std::string_view what);

  // Puts the top into the memo.
  void put(std::uint64_t key);
  void push_memo(std::uint64_t key);
  // Returns how many keys the memo has: the key of the next MEMOIZE.
  std::uint64_t count_memo() const { return memo_.size() + far_memo_.size(); }

 private:
  std::size_t find_floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::size_t find_top_mark(std::string_view what) const;
  void cut_to(std::size_t size);

  Program& program_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // the size of the stack at each mark
  // Keys that follow each other from 0 on are in memo_, larger ones in far_memo_.
  std::vector<Id> memo_;
  std::unordered_map<std::uint64_t, Id> far_memo_;
};

}  // namespace poise::pickle
