#include "syntax/pickle_machine.hpp"

#include <fmt/format.h>

namespace poise::pickle {
namespace {

constexpr std::uint64_t kMemoBytes = 48;

}  // namespace

void Stack::push(Id id) {
  program_.charge(sizeof(Id));
  stack_.push_back(id);
}

Id Stack::top() const {
  if (stack_.size() <= find_floor()) program_.fail("the stack is empty");
  return stack_.back();
}

Id Stack::pop() {
  const Id id = top();
  stack_.pop_back();
  return id;
}

void Stack::drop() {
  if (stack_.size() == find_floor() && !marks_.empty()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

std::vector<Id> Stack::pop_many(std::size_t count) {
  if (stack_.size() - find_floor() < count)
    program_.fail(fmt::format("{} objects wanted, the stack has {}", count, stack_.size() - find_floor()));
  std::vector<Id> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return items;
}

void Stack::push_mark() {
  program_.charge(sizeof(std::size_t));
  marks_.push_back(stack_.size());
}

std::size_t Stack::find_top_mark(std::string_view what) const {
  if (marks_.empty()) program_.fail(fmt::format("{}: there is no mark", what));
  return marks_.back();
}

void Stack::cut_at_mark(std::size_t size) {
  stack_.resize(size);
  marks_.pop_back();
}

std::vector<Id> Stack::pop_marked(std::string_view what) {
  const std::size_t mark = find_top_mark(what);
  std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
  cut_at_mark(mark);
  return items;
}

void Stack::drop_marked(std::string_view what) { cut_at_mark(find_top_mark(what)); }

void Stack::store_in_memo(std::uint64_t key) {
  program_.charge(key < memo_.size() ? 0 : kMemoBytes);
  if (key < memo_.size()) {
    memo_[static_cast<std::size_t>(key)] = top();
  } else if (key == memo_.size()) {
    memo_.push_back(top());
    for (auto next = far_memo_.find(memo_.size()); next != far_memo_.end(); next = far_memo_.find(memo_.size())) {
      memo_.push_back(next->second);
      far_memo_.erase(next);
    }
  } else {
    far_memo_[key] = top();
  }
}

void Stack::push_from_memo(std::uint64_t key) {
  if (key < memo_.size()) return push(memo_[static_cast<std::size_t>(key)]);
  const auto found = far_memo_.find(key);
  if (found == far_memo_.end()) program_.fail(fmt::format("the memo has no object {}", key));
  push(found->second);
}

}  // namespace poise::pickle
