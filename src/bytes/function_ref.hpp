// A FunctionRef is a parameter that accepts any function. Unlike std::function, it neither allocates nor copies.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace poise {

template <typename Signature>
class FunctionRef;

// Requires: the function outlives this.
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <typename Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef> &&
           std::is_invocable_r_v<Result, Function&, Arguments...>) FunctionRef(Function&& function)
      : function_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* to, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(to))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

 private:
  void* function_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace poise
