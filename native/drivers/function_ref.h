// A reference to a callable object, which the caller owns. Unlike std::function, it does not allocate memory.
#pragma once

namespace maxops {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
public:
    template <class Function>
    FunctionRef(const Function& function)
        : function_(&function), call_([](const void* known, Args... args) -> Result {
              return (*static_cast<const Function*>(known))(args...);
          }) {}

    Result operator()(Args... args) const { return call_(function_, args...); }

private:
    const void* function_;
    Result (*call_)(const void*, Args...);
};

}  // namespace maxops
