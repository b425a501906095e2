// The part of ONNX Runtime's C interface that custom operators need. No package that a build can require
// contains its header, so this file repeats the declarations. The interface guarantees that they are stable:
// a function keeps its index in the table, and a struct only grows at its end.
#pragma once
#include <cstddef>
#include <cstdint>

namespace maxops::onnxruntime {

// Used only through pointers.
struct Status;
struct SessionOptions;
struct OperatorDomain;
struct KernelInfo;
struct KernelContext;
struct Value;
struct TensorInfo;
struct CustomOperator;

constexpr int kFail = 1, kInvalidArgument = 2;  // codes of a Status; a null Status is success

using Unused = void (*)();

// The table of functions, by index. Its first version has all of them.
struct Api {
    Status* (*create_status)(int code, const char* message);
    Unused unused_1[25];
    Status* (*create_domain)(const char* name, OperatorDomain** out);
    Status* (*add_operator)(OperatorDomain*, const CustomOperator*);
    Status* (*add_domain)(SessionOptions*, OperatorDomain*);
    Unused unused_29[22];
    Status* (*tensor_data)(Value*, void** out);
    Unused unused_52[8];
    Status* (*element_type)(const TensorInfo*, int* out);
    Status* (*rank)(const TensorInfo*, std::size_t* out);
    Status* (*dimensions)(const TensorInfo*, std::int64_t* out, std::size_t rank);
    Unused unused_63[2];
    Status* (*tensor_info)(const Value*, TensorInfo** out);
    Unused unused_66[20];
    Status* (*attribute_int64)(const KernelInfo*, const char* name, std::int64_t* out);
    Status* (*attribute_string)(const KernelInfo*, const char* name, char* out, std::size_t* size);
    Status* (*input_count)(const KernelContext*, std::size_t* out);
    Unused unused_89;
    Status* (*input)(const KernelContext*, std::size_t index, const Value** out);
    Status* (*output)(KernelContext*, std::size_t index, const std::int64_t* dims, std::size_t rank,
                      Value** out);
    Unused unused_92;
    void (*release_status)(Status*);
    Unused unused_94[5];
    void (*release_tensor_info)(TensorInfo*);
};
static_assert(offsetof(Api, create_domain) == 26 * sizeof(Unused));
static_assert(offsetof(Api, tensor_data) == 51 * sizeof(Unused));
static_assert(offsetof(Api, element_type) == 60 * sizeof(Unused));
static_assert(offsetof(Api, tensor_info) == 65 * sizeof(Unused));
static_assert(offsetof(Api, attribute_int64) == 86 * sizeof(Unused));
static_assert(offsetof(Api, input) == 90 * sizeof(Unused));
static_assert(offsetof(Api, release_status) == 93 * sizeof(Unused));
static_assert(offsetof(Api, release_tensor_info) == 99 * sizeof(Unused));

struct ApiBase {
    const Api* (*get_api)(std::uint32_t version);  // null if the runtime is older than the version
    const char* (*version_string)();
};

// The version of CustomOperator below: the first whose kernels report errors by a Status (onnxruntime 1.16).
constexpr std::uint32_t kVersion = 16;

enum Characteristic : int { kRequired, kOptional, kVariadic };

struct CustomOperator {
    std::uint32_t version;
    Unused create_kernel;  // the older form of create
    const char* (*name)(const CustomOperator*);
    const char* (*execution_provider)(const CustomOperator*);  // null: the CPU's
    int (*input_type)(const CustomOperator*, std::size_t index);
    std::size_t (*input_types)(const CustomOperator*);
    int (*output_type)(const CustomOperator*, std::size_t index);
    std::size_t (*output_types)(const CustomOperator*);
    Unused compute_kernel;  // the older form of compute
    void (*destroy)(void* kernel);
    Characteristic (*input_characteristic)(const CustomOperator*, std::size_t index);
    Characteristic (*output_characteristic)(const CustomOperator*, std::size_t index);
    int (*input_memory)(const CustomOperator*, std::size_t index);  // 0: where the kernel runs
    int (*variadic_input_least)(const CustomOperator*);
    int (*variadic_input_is_homogeneous)(const CustomOperator*);
    int (*variadic_output_least)(const CustomOperator*);
    int (*variadic_output_is_homogeneous)(const CustomOperator*);
    Status* (*create)(const CustomOperator*, const Api*, const KernelInfo*, void** kernel);
    Status* (*compute)(void* kernel, KernelContext*);
};

}  // namespace maxops::onnxruntime
